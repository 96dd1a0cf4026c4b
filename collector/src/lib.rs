//! The collector: takes in the streams of many hosts and stores every page once.
//!
//! The way of the data: [`Collector`] accepts a connection, `Peer` greets it and reads its blocks,
//! the [`store`] appends them to the segments of their session and makes them durable, then `Peer`
//! acknowledges. The protocol stands in the specification, section 18.
//!
//! From the ground up: `lock`, `host_name`, `clocks`, `block` and `figures`; the [`store`];
//! `messages` and `connection_end`, what is said; `listen`, where connections come from; `peer`, one
//! connection; `server`, all of them.
#![forbid(unsafe_code)]

mod block_memory;
pub mod certs;
mod connection_context;
mod connection_end;
mod figures;
mod host_clock;
mod host_name;
mod hosts;
mod incoming_block;
mod listen;
mod lock;
mod messages;
mod peer;
mod server;
pub mod store;
#[doc(hidden)]
pub mod trial;
mod unix_socket;

pub use figures::Figures;
pub use server::{Collector, CollectorError, CollectorOptions};
