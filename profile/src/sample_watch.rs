//! Where the threads of a process ran, sample by sample, for who writes it down.

use std::{io, mem};

use ringmark_format::samples::KERNEL;

use crate::code::Code;
use crate::descriptors::Descriptors;
use crate::error::ProfileError;
use crate::lines;
use crate::own_numbers::OwnNumbers;
use crate::sampler::{Kernel, Noted, Samples};
use crate::target::Target;

/// A moment at which a thread ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenSample {
    /// When, on the process's `CLOCK_MONOTONIC`, in ns.
    pub mono_ns: u64,
    /// The thread, as its process numbers it.
    pub tid: u32,
    /// Lines: the functions that ran, the innermost first; [`KERNEL`] before them if the kernel's own code ran.
    pub text: String,
}

/// Samples the threads of a process, those that are there and those that they begin.
pub struct SampleWatch {
    target: Target,
    code: Code,
    samples: Samples,
    numbers: OwnNumbers,
    /// By how much `CLOCK_MONOTONIC` of the process is ahead of the kernel's.
    ahead_ns: i64,
    /// Samples that had no room, and were given out as such.
    lost_before: u64,
}

impl std::fmt::Debug for SampleWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SampleWatch").finish_non_exhaustive()
    }
}

impl SampleWatch {
    /// Begins with all threads of a process, `hertz` times in each second that one runs. Each takes a descriptor for each
    /// processor: the limit of this process is best raised before.
    ///
    /// # Errors
    /// There is no such process, or this user may not, on this host.
    pub fn attach(pid: u32, hertz: u64) -> io::Result<Self> {
        let target = Target::open(pid).map_err(|ProfileError::NoProcess { error, .. }| error)?;
        let samples = Samples::begin(&target, hertz, (Descriptors::now(), Noted::Programs))?;
        Ok(Self {
            code: Code::of(&target),
            numbers: OwnNumbers::of(&target),
            ahead_ns: target.monotonic_ahead_ns(),
            lost_before: 0,
            samples,
            target,
        })
    }

    /// Gives out the samples that there are. To be called some 100 times a second: the kernel's buffers hold a bounded
    /// number.
    pub fn take(&mut self) -> Vec<SeenSample> {
        let mut given = Vec::new();
        let (code, target, numbers) = (&mut self.code, &mut self.target, &mut self.numbers);
        let ahead_ns = self.ahead_ns;
        self.samples.take(|sample| {
            let Some(tid) = numbers.own(target, sample.tid, false) else {
                return;
            };
            let stack = sample
                .registers
                .map(|registers| code.unwind(target, registers, sample.stack));
            let kernel = sample.is_in_kernel.then(|| KERNEL.to_owned());
            let functions = stack.iter().flat_map(|stack| lines::functions(stack, code));
            let lines: Vec<_> = kernel.into_iter().chain(functions).collect();
            given.push(SeenSample {
                mono_ns: sample.mono_ns.saturating_add_signed(ahead_ns),
                tid,
                text: lines.join("\n"),
            });
        });
        if mem::take(&mut self.samples.has_new_program) && self.target.has_memory() {
            self.target.open_memory();
            self.code.begin_again(&self.target);
        }
        given
    }

    /// Samples that had no room since this was asked last.
    pub fn take_lost(&mut self) -> u64 {
        let before = mem::replace(&mut self.lost_before, self.samples.lost);
        self.samples.lost.saturating_sub(before)
    }

    /// The time that a sample stands for, in ns.
    #[must_use]
    pub const fn period_ns(&self) -> u64 {
        self.samples.period_ns
    }

    /// Whether the kernel's own code is sampled, too.
    #[must_use]
    pub fn has_kernel(&self) -> bool {
        self.samples.kernel == Kernel::Included
    }

    /// Samples that had no room so far.
    #[must_use]
    pub const fn without_room(&self) -> u64 {
        self.samples.lost
    }

    /// Threads that are not sampled, or not on every processor.
    #[must_use]
    pub fn threads_left_out(&self) -> u64 {
        self.samples.left_out().len() as u64
    }
}
