//! What whole-system tests share: directories that clean up after themselves, the built
//! `ringmark` binary, child processes that never outlive their test.
#![forbid(unsafe_code)]

pub mod binary;
pub mod browser;
pub mod ca;
pub mod code;
pub mod collecting;
pub mod commands;
pub mod compiler;
pub mod delivery;
pub mod dirs;
pub mod disk;
pub mod document;
pub mod document_run;
pub mod faulty_recorder;
pub mod fixture;
pub mod functions;
pub mod json_schema;
pub mod likeness;
pub mod open_store;
pub mod over_kills;
pub mod place;
pub mod preload_shim;
pub mod process;
pub mod proxy;
pub mod random;
pub mod recording;
pub mod scripted_collector;
pub mod scripted_streamer;
pub mod store_contents;
pub mod streamed_scene;
pub mod terminal;
pub mod tmux;
pub mod tools;
pub mod trace_processor;
pub mod wait;
pub mod wrong_clocks;

pub use binary::ringmark;
pub use dirs::{TempDir, workspace_root};
pub use place::ReservedPlace;
pub use process::{Finished, Running, run};
pub use tools::{has_tools, is_long, log_skip, require_tools};
pub use wait::wait_until;
