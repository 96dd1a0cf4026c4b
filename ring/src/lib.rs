//! Ringmark's protocol: the only place where producer and reader meet.
//!
//! The way of the data through this crate: [`Writer`] reserves, commits and switches pages;
//! [`SlotView`] carries *produced* and *consumed*; [`observe`] copies pages out. [`RingFile`] is
//! the mapped file both sides look at, [`SchemaLog`] holds what the records mean.
//!
//! Three rooms. `arch` is what a processor's own instructions do. [`protocol`] is what both sides do to shared words,
//! over any memory: it makes no file, knows no process, and runs under loom and Miri. [`system`] is what Linux adds: the file,
//! its mapping, its directory, the clocks, and whether a process still lives. It imports the
//! protocol; the protocol imports nothing of it.
//!
//! Where to begin: [`protocol`] has the states of a page, a record and a slot as pictures, with the
//! actor of each step. [`writer`] has the invariants that `unsafe` blocks cite.
//!
//! This crate runs inside the traced program. It prints nothing, never panics on what it finds in
//! shared memory, and takes no lock on the way of an event. Its API is for the crates of this
//! workspace; programs use `ringmark`, tools use `ringmark-reader`.
//!
//! # Orderings
//!
//! Every Acquire, Release and fence on shared words goes through [`order`], has a label, and a
//! partner. Under `--cfg loom` each one can be weakened; the named test in `tests/` then fails.
//!
//! | label | where | pairs with | what breaks otherwise |
//! | --- | --- | --- | --- |
//! | `[W1]` | page switch: fence(Release) after `generation := BUSY` | `[R4]` | a reader keeps a copy that mixes two laps |
//! | `[W2]` | page switch: `generation := n+1`, Release | `[R1]` | a reader sees the new number over the old page's records |
//! | `[W3]` | commit: header word, Release | `[R2]` | a reader sees the header before the payload |
//! | `[W4]` | page switch: `produced := n+1`, Release | `[R3]` | a page counts as sealed before its last records are there |
//! | `[C1]` | release: `consumed := n+1`, Release | `[P1]` | the producer switches a page that is still being read |
//! | `[P1]` | page switch: load `consumed`, Acquire | `[C1]` | the producer switches a page that is still being read |
//! | `[R1]` | observe: load `generation`, Acquire | `[W2]` | stale header fields and records of the lap before |
//! | `[R2]` | observe: load a record's header, Acquire | `[W3]` | torn payload |
//! | `[R3]` | load `produced`, Acquire | `[W4]` | missing records in a page taken for sealed |
//! | `[R4]` | observe: fence(Acquire) before `generation` is loaded again | `[W1]` | an overwritten copy is kept |
//! | `[T1]` | slot state, Release | `[T2]` | a claim is seen before its geometry, owner and positions |
//! | `[T2]` | slot state, Acquire | `[T1]` | a claim is seen before its geometry, owner and positions |
//! | `[O1]` | claim: fence(Release) after `ring_id := 0` | `[O4]` | an owner mixed of two claims |
//! | `[O2]` | claim: `ring_id`, Release | `[O3]` | a claim's ring id over the owner before it |
//! | `[O3]` | owner: load `ring_id`, Acquire | `[O2]` | a claim's ring id over the owner before it |
//! | `[O4]` | owner: fence(Acquire) before `ring_id` is loaded again | `[O1]` | an owner mixed of two claims |
//! | `[F1]` | push: fence(Release) between the claim of a frame and its words | `[F4]` | a copied frame mixes two spans |
//! | `[F2]` | push: a frame's head after its words, Release; pop: after the record; the counts beyond the frames | `[F3]` | a frame is read before its words; an ended span before its record |
//! | `[F3]` | copy: a frame's head before its words, Acquire | `[F2]` | a frame is read before its words; an ended span before its record |
//! | `[F4]` | copy: fence(Acquire) before the head is loaded again | `[F1]` | a copied frame mixes two spans |
//! | `[S1]` | schema length, Release | `[S2]` | a reader parses schema bytes that are not there yet |
//! | `[S2]` | schema length, Acquire | `[S1]` | a reader parses schema bytes that are not there yet |
//! | `[M1]` | mailbox sequence number, Release | `[M2]` | a request or an answer is read before its text |
//! | `[M2]` | mailbox sequence number, Acquire | `[M1]` | a request or an answer is read before its text |
//! | `[L1]` | control lock: taken, Acquire | `[L2]` | two threads of the control path change the registry at once |
//! | `[L2]` | control lock: given back, Release | `[L1]` | two threads of the control path change the registry at once |
//! | `[L3]` | the running session, facts of a call site: Acquire | `[L4]` | a thread uses a session before it is laid out |
//! | `[L4]` | the running session, facts of a call site, a type that is on: Release | `[L3]` | a thread uses a session before it is laid out |
//! | `[G1]` | conditions in force, then a writer's clock taken away: fence | `[G2]` | a thread keeps a clock that it must not have |
//! | `[G2]` | a writer's clock given back, then conditions in force: fence | `[G1]` | a thread keeps a clock that it must not have |
//! | `[L5]` | a region of span ids: taken, Acquire | `[L6]` | two threads give out the same span ids |
//! | `[L6]` | a region of span ids: given back, Release | `[L5]` | two threads give out the same span ids |
//!
//! # Processors
//!
//! On x86-64 each store is a release and each load an acquire, so that of these only the fences bind the compiler alone.
//! aarch64 reorders stores, and loads: there Release is `stlr`, Acquire `ldar`, and a fence an instruction (`dmb`). On the
//! way of an event that is one `stlr` for the commit, and for a span a `dmb` (`[F1]`) and two more `stlr`. The
//! read-modify-writes of a writer order nothing on aarch64, unless they are given an ordering.
//!
//! W4 alone is redundant today: W1, earlier in the same switch, is a fence that orders the same
//! stores before `produced`. It stays, because `produced` promises this by itself; the test shows
//! that with both weakened the promise breaks.

#[cfg(target_endian = "big")]
compile_error!("Ringmark's format is little-endian and its types are read in place");

#[cfg_attr(
    loom,
    allow(dead_code, unused_imports, reason = "what the system needs of it")
)]
mod arch;
pub mod protocol;
#[cfg(not(loom))]
pub mod system;

pub use protocol::{
    clock_sample::ClockSample,
    observe::{PageCopy, PageRead},
    raw_span::RawSpan,
    reservation::Reservation,
    schema_log::{SchemaExhausted, SchemaLog},
    slot::{Owner, SlotGeometry, SlotView},
    span_stack::{SpanPlace, SpanStack, StackCopy},
    writer::Writer,
};
pub use protocol::{
    control_lock, directory, lease, mailbox, observe, order, published_static, reservation,
    schema_log, single_instruction, slot, span_stack, sync, withdrawal, writer,
};
#[cfg(not(loom))]
pub use system::{
    clean, clock, consumer_lease, environment, file_lock, guard, identity, mapping, own_maps,
    process_end, raw, removals, ring_file, room, session_dir, small_file,
};
#[cfg(not(loom))]
pub use system::{
    mapping::{MapError, Mapping},
    ring_file::{Geometry, RingFile, RingFileError},
};
