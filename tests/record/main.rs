//! Recording, snapshots, recovery after death, what the tools report.
#![forbid(unsafe_code)]

mod announced;
mod clock_jumps;
#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod dead_sessions;
mod discard;
mod ends;
mod flight_recorder;
mod given;
mod independent;
mod kill9;
mod left_processes;
mod mistakes;
mod on_death;
mod open_spans;
mod power_loss;
mod scanned;
mod snapshot_last;
mod thread_names;
mod write_faults;
