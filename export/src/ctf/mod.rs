//! CTF 1.8, as babeltrace2 and Trace Compass read it: a folder for each process, in it `metadata` and
//! a stream for each thread.
//!
//! A packet is what came from one page. Times are wall times in ns, and the clock has one identity,
//! so that traces lie side by side. Records stand as they are: a span is an event at its end, with
//! its duration. What is not there is counted where the readers of CTF look for it, in
//! `events_discarded` of the packets.

mod event_class;
mod metadata;
mod stream;
pub(crate) mod writer;
