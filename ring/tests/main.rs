//! The protocol of a ring. Its models under `--cfg loom`, handlers at every step under `--cfg steps`.

mod any_order;
mod guard;
#[cfg(not(loom))]
mod heap;
mod heap_ring;
#[cfg(not(steps))]
mod hostile_pages;
mod loom_control;
mod loom_discard;
mod loom_handover;
mod loom_open_spans;
mod loom_overwrite;
mod loom_slots;
#[cfg(loom)]
mod models;
mod nesting;
mod old_page;
#[cfg(not(any(loom, steps)))]
mod open_spans;
mod own_rings;
mod span_steps;
mod steps;
