//! The collector: takes in the streams of many hosts and stores every page once.
//!
//! The way of a block, one file or folder for each step:
//!
//! 1. `listen`: a connection comes, over TCP, TLS or a unix socket, and proves its host if it can.
//! 2. `peer`: the streamer is greeted; whole blocks are read within bounds of memory and time
//!    (`incoming_block`, `block_memory`) and passed on to their session.
//! 3. [`store`]: the session appends each new block to a segment, each page once.
//! 4. `peer` again: the segments are synced, and what is durable is acknowledged. Only then the
//!    streamer releases the pages.
//!
//! `storage` is where: the store, or objects that several collectors share. `server` runs all connections and ends them. What has not proved which host it is of waits in the
//! `unproved` pool; then `host_shares` bound what each host takes. `connection_end` and `messages`
//! have what is said to a streamer, `notice` what the operator is told, `figures` and `hosts` what
//! `metrics` serves. `options` are given at the start; `settings` are those of them that change later.
//! Whatever may wait for the disk goes through `disk_calls`. The protocol is in section 18 of the
//! specification.
#![forbid(unsafe_code)]

mod block_memory;
pub mod certs;
mod check;
mod clock;
mod connection_context;
mod connection_end;
mod deny_rule;
mod disk_calls;
mod figures;
mod histogram;
mod host_clock;
mod host_name;
mod host_shares;
mod hosts;
mod incoming_block;
mod listen;
#[cfg(feature = "models")]
pub mod machines;
mod messages;
mod metrics;
mod mutex;
mod notice;
mod options;
mod peer;
mod reason;
mod refusals;
mod server;
#[cfg(feature = "models")]
mod set_clock;
mod settings;
#[cfg(feature = "models")]
pub mod socketless_collector;
mod storage;
pub mod store;
mod unix_socket;
#[cfg_attr(not(feature = "models"), expect(unreachable_pub))]
mod unproved;

pub use check::check;
pub use deny_rule::{BadRule, DenyRule};
pub use figures::Figures;
pub use host_shares::HostLimits;
pub use notice::{Doing, Notice, Origin, Severity};
pub use options::CollectorOptions;
pub use reason::Reason;
pub use server::{Collector, CollectorError};
pub use settings::{CollectorSettings, NeedsRestart};
