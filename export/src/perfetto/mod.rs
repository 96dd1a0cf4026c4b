//! Perfetto's own format: a stream of protobuf packets.
//!
//! Each thread has a packet sequence of its own, with names that it brings once and times that
//! count from the packet before. After a loss the sequence begins again, so that a reader that
//! passes over a part goes on there. Times are wall times, so traces of several hosts lie side by
//! side, and a trace of the system joins them by its own clock snapshots.

mod args;
mod cpus;
mod fields;
mod front;
mod names;
mod proto;
mod sequence;
mod tracks;
pub(crate) mod writer;
