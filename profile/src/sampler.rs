//! Samples of what runs, by the kernel's `perf_event_open`: registers and the top of the stack, so many times a second
//! of processor time. One event for each thread and processor; those of a processor share one buffer. New threads are
//! followed by the kernel.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use perf_event::data::{Record, SampleRegsAbi};
use perf_event::events::Software;
use perf_event::{Builder, Counter, SampleFlag, Sampler};

use crate::code::Registers;
use crate::target::Target;

/// Bytes of a stack in a sample.
const STACK_BYTES: u32 = 8 << 10;
/// Bytes of a processor's buffer, the largest that may be had.
const BUFFERS: [usize; 4] = [1 << 20, 512 << 10, 256 << 10, 128 << 10];
/// Registers that unwinding begins with, as the kernel numbers them: frame pointer, stack pointer, instruction.
const REGISTERS: u64 = (1 << 6) | (1 << 7) | (1 << 8);

/// Whether the kernel's own code is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kernel {
    Included,
    Excluded,
}

/// A moment at which a thread ran.
pub(crate) struct Sample<'a> {
    /// `None`: it ran the kernel's code, with no code of the program below it.
    pub(crate) registers: Option<Registers>,
    pub(crate) stack: &'a [u8],
    /// It ran the kernel's code.
    pub(crate) is_in_kernel: bool,
}

/// Samples threads of a process.
pub(crate) struct Samples {
    buffers: Vec<Sampler>,
    /// Events that write to those buffers.
    events: Vec<Counter>,
    pub(crate) kernel: Kernel,
    /// Threads that could not be sampled.
    pub(crate) threads_left_out: u64,
    /// Samples that the kernel had no room for.
    pub(crate) lost: u64,
}

impl Samples {
    /// Begins to sample all threads of a process, that many times a second.
    ///
    /// # Errors
    /// This user may not, on this host.
    pub(crate) fn begin(target: &Target, hertz: u64) -> io::Result<Self> {
        match Self::with(target, hertz, Kernel::Included) {
            Err(error) if is_refusal(&error) => Self::with(target, hertz, Kernel::Excluded),
            begun => begun,
        }
    }

    fn with(target: &Target, hertz: u64, kernel: Kernel) -> io::Result<Self> {
        let mut samples = Self {
            buffers: Vec::new(),
            events: Vec::new(),
            kernel,
            threads_left_out: 0,
            lost: 0,
        };
        let tids = target.threads()?;
        for cpu in online()? {
            samples.begin_on(cpu, &tids, hertz)?;
        }
        Ok(samples)
    }

    /// Begins on one processor.
    fn begin_on(&mut self, cpu: usize, tids: &[u32], hertz: u64) -> io::Result<()> {
        let mut first: Option<RawFd> = None;
        for tid in tids {
            let event = match event(*tid, cpu, hertz, self.kernel) {
                Ok(event) => event,
                // It has ended by now.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) if first.is_none() => return Err(error),
                Err(_) => {
                    self.threads_left_out += 1;
                    continue;
                }
            };
            match first {
                None => {
                    let buffer = buffer(event, || self::event(*tid, cpu, hertz, self.kernel))?;
                    first = Some(buffer.as_raw_fd());
                    self.buffers.push(buffer);
                }
                Some(first) => match write_to(&event, first) {
                    Ok(()) => self.events.push(event),
                    Err(_) => self.threads_left_out += 1,
                },
            }
        }
        Ok(())
    }

    /// Takes all samples that there are.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&Sample<'_>)) {
        for buffer in &mut self.buffers {
            while let Some(record) = buffer.next_record() {
                match record.parse_record() {
                    Ok(Record::Sample(found)) => {
                        let is_in_kernel = record.misc() & 7 == 1;
                        let registers = found
                            .regs_user()
                            .filter(|registers| registers.abi == SampleRegsAbi::ABI_64);
                        // In the order of their numbers.
                        let registers = match registers.map(|registers| &registers.regs[..]) {
                            Some([frame_pointer, stack_pointer, instruction]) => Some(Registers {
                                instruction: *instruction,
                                stack_pointer: *stack_pointer,
                                frame_pointer: Some(*frame_pointer),
                            }),
                            _ => None,
                        };
                        each(&Sample {
                            registers,
                            stack: found.stack_user().unwrap_or_default(),
                            is_in_kernel,
                        });
                    }
                    Ok(Record::Lost(lost)) => self.lost = self.lost.saturating_add(lost.lost),
                    _ => {}
                }
            }
        }
    }
}

/// Whether this user may not have it.
fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// An event of a thread on a processor.
fn event(tid: u32, cpu: usize, hertz: u64, kernel: Kernel) -> io::Result<Counter> {
    let mut builder = Builder::new(Software::CPU_CLOCK);
    builder
        .observe_pid(tid.cast_signed())
        .one_cpu(cpu)
        .inherit(true)
        .inherit_thread(true)
        .enabled(true)
        .exclude_kernel(kernel == Kernel::Excluded)
        .exclude_hv(true)
        .sample_period(1_000_000_000 / hertz.max(1))
        .sample(SampleFlag::REGS_USER | SampleFlag::STACK_USER)
        .sample_regs_user(REGISTERS)
        .sample_stack_user(STACK_BYTES);
    builder.build()
}

/// Gives an event a buffer, the largest that may be had. `again` makes the event once more.
fn buffer(event: Counter, again: impl Fn() -> io::Result<Counter>) -> io::Result<Sampler> {
    let mut event = Some(event);
    let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
    for bytes in BUFFERS {
        let event = match event.take() {
            Some(event) => event,
            None => again()?,
        };
        match event.sampled(bytes) {
            Ok(buffer) => return Ok(buffer),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Has an event write to the buffer of another one.
fn write_to(event: &Counter, buffer: RawFd) -> io::Result<()> {
    /// `PERF_EVENT_IOC_SET_OUTPUT`.
    const SET_OUTPUT: libc::c_ulong = 0x2405;
    // SAFETY: both are open descriptors of perf events, the one by its borrow and the other because its sampler lives in
    // `buffers`; this request takes a number and touches no memory.
    let done = unsafe { libc::ioctl(event.as_raw_fd(), SET_OUTPUT, buffer) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Numbers of the processors that are on.
fn online() -> io::Result<Vec<usize>> {
    let text = std::fs::read_to_string("/sys/devices/system/cpu/online")?;
    ranges(&text).ok_or_else(|| {
        io::Error::other(format!(
            "/sys/devices/system/cpu/online: found {text:?}, expected ranges such as 0-3"
        ))
    })
}

/// `0-2,5` as 0, 1, 2, 5.
fn ranges(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for range in text.trim().split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        numbers.extend(from.parse::<usize>().ok()?..=to.parse::<usize>().ok()?);
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn processors() {
        assert_eq!(ranges("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(ranges("0"), Some(vec![0]));
        assert_eq!(ranges("all"), None);
    }
}
