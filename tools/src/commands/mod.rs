//! One module per command: its options and what it does.

pub(crate) mod cat;
pub(crate) mod clean;
pub(crate) mod compact;
pub(crate) mod cut;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod events;
mod events_switch;
pub(crate) mod export;
mod export_rows;
pub(crate) mod functions;
pub(crate) mod graph;
pub(crate) mod list;
mod listed;
pub(crate) mod profile;
pub(crate) mod query;
pub(crate) mod record;
pub(crate) mod report;
mod report_by;
mod report_changes;
pub(crate) mod report_page;
mod report_paths;
pub(crate) mod run;
pub(crate) mod snapshot;
pub(crate) mod top;
pub(crate) mod trace;
pub(crate) mod verify;
