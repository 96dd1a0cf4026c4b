//! Samples of what runs: registers and the top of the stack, so many times a second of processor time.

use std::collections::BTreeSet;
use std::io;

use perf_event::data::{self, Record, SampleRegsAbi};
use perf_event::events::Software;
use perf_event::{Builder, Clock, SampleFlag};

use crate::arch::{self, Registers};
use crate::descriptors::Descriptors;
use crate::joined::{Joined, is_refusal};
use crate::schedule::mono_ns;
use crate::switches::Switches;
use crate::target::Target;

/// Bytes of a stack in a sample.
const STACK_BYTES: u32 = 8 << 10;
/// Bytes of a sample with such a stack, and more than that of any other record.
const LARGEST_RECORD: usize = STACK_BYTES as usize + 256;
/// Bit of a record of a new name: the process has executed another program (`PERF_RECORD_MISC_COMM_EXEC`).
const EXECUTED: u16 = 1 << 13;

/// Whether the kernel's own code is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Included,
    Excluded,
}

/// What is noted beside samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noted {
    /// Switches of the threads.
    Switches,
    /// That the process executes another program.
    Programs,
}

/// A moment at which a thread ran.
pub(crate) struct Sample<'a> {
    /// Its number, as this process sees it.
    pub(crate) tid: u32,
    /// When, on the kernel's `CLOCK_MONOTONIC`, in ns.
    pub(crate) mono_ns: u64,
    /// `None`: it ran the kernel's code, with no code of the program below it.
    pub(crate) registers: Option<Registers>,
    pub(crate) stack: &'a [u8],
    /// It ran the kernel's code.
    pub(crate) is_in_kernel: bool,
}

/// Samples threads of a process.
pub(crate) struct Samples {
    events: Joined,
    pub(crate) kernel: Kernel,
    /// The time that a sample stands for, in ns.
    pub(crate) period_ns: u64,
    /// The process has executed another program.
    pub(crate) has_new_program: bool,
    /// Samples and switches that the kernel had no room for.
    pub(crate) lost: u64,
    /// Switches so far.
    pub(crate) switches: Switches,
}

impl Samples {
    /// Begins to sample all threads of a process, that many times a second.
    ///
    /// # Errors
    /// This user may not, on this host.
    pub(crate) fn begin(
        target: &Target,
        hertz: u64,
        (descriptors, noted): (Descriptors, Noted),
    ) -> io::Result<Self> {
        let period_ns = 1_000_000_000 / hertz.max(1);
        let with = |kernel| {
            let prepare = || prepared(period_ns, kernel, noted);
            let wanted = (prepare, LARGEST_RECORD);
            let events = Joined::begin(|| target.threads(), descriptors, wanted)?;
            Ok(Self::new(events, kernel, period_ns))
        };
        match with(Kernel::Included) {
            Err(error) if is_refusal(&error) => with(Kernel::Excluded),
            begun => begun,
        }
    }

    fn new(events: Joined, kernel: Kernel, period_ns: u64) -> Self {
        Self {
            events,
            kernel,
            period_ns,
            has_new_program: false,
            lost: 0,
            switches: Switches::default(),
        }
    }

    /// Threads that are not sampled, or not on every processor.
    pub(crate) const fn left_out(&self) -> &BTreeSet<u32> {
        &self.events.left_out
    }

    /// Takes all samples and switches that there are.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        let now = mono_ns();
        let (lost, switches) = (&mut self.lost, &mut self.switches);
        let has_new_program = &mut self.has_new_program;
        let _ = self.events.take(|cpu, record| match record.parse_record() {
            Ok(Record::Sample(found)) => each(&Sample {
                tid: found.tid().unwrap_or_default(),
                mono_ns: found.time().unwrap_or_default(),
                registers: registers(&found),
                stack: found.stack_user().unwrap_or_default(),
                is_in_kernel: record.misc() & 7 == 1,
            }),
            Ok(Record::Comm(_)) => *has_new_program |= record.misc() & EXECUTED != 0,
            Ok(Record::Lost(found)) => *lost = lost.saturating_add(found.lost),
            _ => switches.take(cpu, record),
        });
        self.switches.are_whole_until(now);
    }
}

/// The registers of the program's own code, in the order of their numbers.
fn registers(found: &data::Sample<'_>) -> Option<Registers> {
    let registers = found.regs_user()?;
    match registers.abi {
        SampleRegsAbi::ABI_64 => arch::sampled(&registers.regs),
        _ => None,
    }
}

/// A period that is asked for to see whether samples are allowed, in ns.
const PROBE_NS: u64 = 10_000_000;

/// Whether this process may sample what it runs itself: `true`, the kernel's code, too.
///
/// # Errors
/// It may not, on this host.
pub fn samples_allowed() -> io::Result<bool> {
    let may = |kernel| {
        prepared(PROBE_NS, kernel, Noted::Switches)
            .observe_self()
            .any_cpu()
            .build()
            .map(drop)
    };
    match may(Kernel::Included) {
        Err(error) if is_refusal(&error) => may(Kernel::Excluded).map(|()| false),
        result => result.map(|()| true),
    }
}

/// What is sampled of a thread, and what is noted beside it.
fn prepared(period_ns: u64, kernel: Kernel, noted: Noted) -> Builder<'static> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .exclude_kernel(kernel == Kernel::Excluded)
        .exclude_hv(true)
        .sample_period(period_ns)
        .context_switch(noted == Noted::Switches)
        .comm(noted == Noted::Programs)
        .comm_exec(noted == Noted::Programs)
        .sample_id_all(true)
        .clockid(Clock::MONOTONIC)
        .sample(SampleFlag::TID | SampleFlag::TIME)
        .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
        .sample_regs_user(arch::SAMPLED)
        .sample_stack_user(STACK_BYTES);
    builder
}
