//! What whole-system tests share: directories that clean up after themselves, the built
//! `ringmark` binary, child processes that never outlive their test.
#![forbid(unsafe_code)]

pub mod account;
pub mod binary;
pub mod ca;
pub mod code;
pub mod collecting;
pub mod compiler;
pub mod dirs;
pub mod disk;
pub mod functions;
pub mod left;
pub mod opened;
pub mod peer;
pub mod process;
pub mod proxy;
pub mod random;
pub mod recording;
pub mod shim;
pub mod skew;
pub mod stage;
pub mod stored;
pub mod taker;
pub mod tools;
pub mod wait;

pub use binary::ringmark;
pub use dirs::{TempDir, workspace_root};
pub use process::{Finished, Running, run};
pub use tools::{is_long, require_namespaces, require_tools};
pub use wait::wait_until;
