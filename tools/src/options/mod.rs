//! Groups of options that several commands take.

pub(crate) mod calls;
pub(crate) mod config_file;
pub(crate) mod credentials;
pub(crate) mod event_filter;
pub(crate) mod figures;
pub(crate) mod policy_file;
pub(crate) mod rows;
pub(crate) mod sessions;
pub(crate) mod wide;
