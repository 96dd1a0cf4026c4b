//! One module per command: its options and what it does.

pub(crate) mod certs;
pub(crate) mod collect;
pub(crate) mod store;
mod store_hosts;
pub(crate) mod stream;
