//! Recordings from start to end: the program that is traced, its settings and signals, progress on
//! a terminal, and what is told afterwards.
//!
//! `command` starts a [`traced_program`] and records it with its descendants, and says what it
//! leaves running (`left_processes`). `profiled_program` is one that is looked at and not traced. `sessions` records what runs already, `attached` a process with
//! its functions; `deaths` waits for processes that die, and
//! `named_triggers` for events of a name. `trace_file` says how the file is written,
//! `outcome` what came of it. `sched` has the switches of threads written beside.

pub(crate) mod attached;
pub(crate) mod command;
pub(crate) mod deaths;
mod left_processes;
pub(crate) mod named_triggers;
pub(crate) mod outcome;
mod passed_signals;
pub(crate) mod profiled_program;
pub(crate) mod sessions;
pub(crate) mod settings;
pub(crate) mod trace_file;
pub(crate) mod traced_program;
pub(crate) mod watches;
