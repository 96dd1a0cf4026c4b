//! Finding sites: what the loader mapped (`loader`, `maps`), what the files of modules say
//! (`elf`, with `symbol`, `debug_file`, `unwind_table` and `asks_caller`), the entries of
//! their tables (`table_entries`), and which of these are sites that can be believed (`scan`,
//! `exits`). What is found is a [`Module`].

mod asks_caller;
mod debug_file;
mod demangle;
pub(crate) mod elf;
mod exits;
mod in_file;
pub(crate) mod loader;
pub(crate) mod maps;
mod module;
pub(crate) mod scan;
mod symbol;
mod table_entries;
mod unwind_table;

pub use demangle::{demangled, readable};
pub use elf::names_sites;
pub use in_file::{InFile, in_file};
pub use module::{Function, Kind, Module, ModuleId, Reason, Refused, Site, SiteId};
