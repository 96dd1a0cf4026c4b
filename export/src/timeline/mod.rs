//! A trace as viewers want it: rows of slices that begin and end, in the order of time.
//!
//! A finished span is one record, written at its end, but a viewer must be given its beginning at
//! its place among the others. So a trace is gone through twice. The first time ([`plan`]) counts
//! everything and notes which spans begin far before their record; the second time ([`play`]) goes
//! in [`stretches`] of some thousand items, and puts the beginnings where they belong ([`order`]).
//! Memory is that of one stretch and of what was noted, which are the spans over the border of a
//! stretch.
//!
//! Both go ring by ring: viewers order the threads of a trace themselves. What threads did, [`states`] has in the end. Only spans over threads
//! ([`lives`]) need all rings in the order of time, and only their records are read for them.

pub(crate) mod by_thread;
pub(crate) mod calls;
pub(crate) mod items;
pub(crate) mod lanes;
mod lives;
mod newest;
pub(crate) mod order;
pub(crate) mod plan;
pub(crate) mod play;
pub(crate) mod processes;
mod states;
mod stretches;
pub(crate) mod viewer;
