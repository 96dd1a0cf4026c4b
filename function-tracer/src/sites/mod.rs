//! Finding patch sites. What is found is a [`Module`]; nothing changes it afterwards.
//!
//! 1. `loader` and `maps`: what the loader mapped, and where.
//!    `rendezvous`: where it tells of changes.
//! 2. `elf`: what a module's file says. `symbol`: its functions, `names`: theirs; `debug_file`: those of a stripped
//!    file. `unwind_table`: where functions begin and have their return addresses. `asks_caller`:
//!    functions whose return address must stay, by the names in `asking_names`.
//! 3. `table_entries`: the entries of the tables of sites, as they are in memory, or as `relocations`
//!    make them.
//! 4. `scan`: which entries are patch sites; `exits`: which functions have a site at every exit.
//!    `moved`: sites where an instruction is moved, as the tool has found them.
//! 5. `module`: the facts. `file_error`: why a file has none.
//!
//! `in_file` does the same for a file that does not run.

mod asking_names;
mod asks_caller;
mod debug_file;
pub(crate) mod elf;
mod exits;
mod file_error;
mod in_file;
pub(crate) mod loader;
pub(crate) mod maps;
mod module;
pub(crate) mod moved;
mod names;
mod relocations;
pub(crate) mod rendezvous;
pub(crate) mod scan;
mod symbol;
mod table_entries;
mod unwind_table;

pub use debug_file::{debug_file, separate_file};
pub use elf::{Headers, handing_on};
pub use file_error::FileError;
pub use in_file::{InFile, Instrumentation, in_file};
pub use module::{Function, Module, ModuleId, Reason, Refused, Site, SiteId, SiteKind};
pub use names::SymbolName;
pub use symbol::{demangled, readable};
