//! What the decoder makes of blocks, sound and damaged.

mod calls_elsewhere;
mod calls_lost;
mod coarse_clock;
mod common;
mod cut;
mod damage;
mod decode;
mod endings;
mod follow;
mod functions;
mod golden;
mod hostile;
mod json;
mod losses;
mod nesting;
mod object_reads;
mod open_spans;
mod parts;
mod process;
mod sampled;
mod self_time;
mod spans;
mod spans_around;
mod stored;
mod switches;
mod window;
