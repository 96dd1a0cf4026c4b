//! Where the time of a process goes that nobody prepared: what its threads run, and what they wait for.
//!
//! [`Profiler::attach`] finds the process, [`Profiler::look`] is called some 20 times a second ([`LOOK_EVERY`]), and
//! [`Profiler::profile`] sums up. Two sources give the answer:
//!
//! - `looker`: `/proc` says of each thread how long it ran, how long it had to wait for a processor, and, of one that
//!   waits, its system call and where its stack is. This needs no privilege beyond being the same user, and stops
//!   nothing. Where it is refused, the kernel still says where in its own code a thread waits, or at least how.
//! - `sampler`: the kernel's `perf_event_open` copies the stack of what runs, and notes each switch (`switches`). Where it
//!   is refused, times of running are known and their functions are not: [`Missing`] says so.
//!
//! [`SwitchWatch`] gives the switches one by one, to be written beside the events of the process: no samples, no looks.
//! [`WaitWatch`] gives the waits one by one, for the same: looks alone. [`SampleWatch`] gives the samples.
//!
//! `code` unwinds the stacks and knows functions by address, `wait` says what a system call waits for, `target` reads
//! the files of the process.

mod arch;
mod code;
mod descriptors;
mod elf;
mod error;
mod file_locks;
mod frame_pointer;
mod joined;
mod lines;
mod looker;
mod module;
mod own_numbers;
mod peers;
mod profile;
mod profiler;
mod sample_watch;
mod sampler;
mod schedule;
mod switch_watch;
mod switches;
mod system_call;
mod target;
mod throttle;
mod wait;
mod wait_watch;

pub use code::{Function, WITHOUT_FILE};
pub use error::ProfileError;
pub use looker::ThreadTimes;
pub use profile::{FunctionTimes, Missing, Profile, RunningStack, Thread, WaitTimes};
pub use profiler::{LOOK_EVERY, Profiler};
pub use sample_watch::{SampleWatch, SeenSample};
pub use sampler::samples_allowed;
pub use switch_watch::{SwitchRange, SwitchWatch};
pub use switches::ThreadSwitches;
pub use wait::Wait;
pub use wait_watch::{SeenWait, WaitWatch};
