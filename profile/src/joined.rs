//! Events of the kernel (`perf_event_open`) for all threads of a process: one for each thread and processor; those of a
//! processor share one buffer. New threads are followed by the kernel.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use perf_event::{Builder, Counter, Record, Sampler};
use ringmark_format::switches::NO_CPU;

use crate::descriptors::Descriptors;

/// Bytes of each processor's buffer: the largest that all may have. They are of the user's locked memory.
const BUFFERS: [usize; 8] = [
    1 << 20,
    512 << 10,
    256 << 10,
    128 << 10,
    64 << 10,
    32 << 10,
    16 << 10,
    8 << 10,
];
/// A buffer holds at least so many of the largest records.
const RECORDS: usize = 8;

/// How often the events are opened, where each time other threads were there before than after.
const ATTEMPTS: u32 = 4;

/// Why there is no buffer, however small.
const NO_MEMORY: &str =
    "this user's locked memory is used up: 'ulimit -l' and kernel.perf_event_mlock_kb bound it";

/// Bytes of a record's head.
const RECORD_HEAD: usize = 8;

/// Why there are no events.
enum Refused {
    /// There is no memory for buffers of this size.
    Memory(io::Error),
    Other(io::Error),
}

/// Events of the threads of a process.
pub(crate) struct Joined {
    /// Each with the number of its processor.
    buffers: Vec<(Sampler, u16)>,
    /// Bytes of each, from which on it may have no room for another record.
    full: usize,
    /// Events that write to those buffers, and of which threads they are.
    events: Vec<(u32, Counter)>,
    /// Threads that were there when it began.
    pub(crate) threads: BTreeSet<u32>,
    /// Threads that have no event.
    pub(crate) left_out: BTreeSet<u32>,
}

impl Joined {
    /// Begins with all threads that `list` names. `prepare` says what is wanted of each, `largest` how many bytes the largest
    /// record of that has.
    ///
    /// One that began meanwhile has the events of the thread that began it, or was too early for them: nothing tells
    /// which. So all is done again until none has, and those of the last time are left out.
    ///
    /// # Errors
    /// This user may not, on this host.
    pub(crate) fn begin(
        list: impl Fn() -> io::Result<BTreeSet<u32>>,
        descriptors: Descriptors,
        (prepare, largest): (impl Fn() -> Builder<'static>, usize),
    ) -> io::Result<Self> {
        let mut before = list()?;
        let mut attempt = 1;
        loop {
            let mut joined = Self::with_room(&before, descriptors, (&prepare, largest))?;
            let after = list()?;
            if after.is_subset(&before) || attempt == ATTEMPTS {
                joined.left_out.extend(after.difference(&before));
                joined.threads = before;
                return Ok(joined);
            }
            (before, attempt) = (after, attempt + 1);
        }
    }

    /// Begins with the largest buffers that may be had.
    fn with_room(
        tids: &BTreeSet<u32>,
        descriptors: Descriptors,
        (prepare, largest): (impl Fn() -> Builder<'static>, usize),
    ) -> io::Result<Self> {
        let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
        for bytes in BUFFERS.into_iter().filter(|of| *of >= RECORDS * largest) {
            let full = bytes - largest;
            match Self::begin_with(tids, descriptors, &prepare, (bytes, full)) {
                Ok(joined) => return Ok(joined),
                Err(Refused::Other(error)) => return Err(error),
                Err(Refused::Memory(error)) => refused = error,
            }
        }
        match is_refusal(&refused) {
            // The events themselves were allowed.
            true => Err(io::Error::other(NO_MEMORY)),
            false => Err(refused),
        }
    }

    fn begin_with(
        tids: &BTreeSet<u32>,
        descriptors: Descriptors,
        prepare: impl Fn() -> Builder<'static>,
        (bytes, full): (usize, usize),
    ) -> Result<Self, Refused> {
        let mut joined = Self {
            buffers: Vec::new(),
            full,
            events: Vec::new(),
            threads: BTreeSet::new(),
            left_out: BTreeSet::new(),
        };
        for cpu in online().map_err(Refused::Other)? {
            let make = |tid: u32| {
                let mut builder = prepare();
                builder
                    .observe_pid(tid.cast_signed())
                    .one_cpu(cpu)
                    .inherit(true)
                    .inherit_thread(true)
                    .enabled(true);
                builder.build()
            };
            joined.begin_on_one((cpu, bytes), tids, descriptors, make)?;
        }
        // One that is not followed on every processor is not followed: what is seen of it, and of those that it
        // begins, would be a part.
        let left_out = &joined.left_out;
        joined.events.retain(|(tid, _)| !left_out.contains(tid));
        Ok(joined)
    }

    /// Begins on one processor. Each thread is looked at, too, which takes a descriptor for each.
    fn begin_on_one(
        &mut self,
        (cpu, bytes): (usize, usize),
        tids: &BTreeSet<u32>,
        descriptors: Descriptors,
        make: impl Fn(u32) -> io::Result<Counter>,
    ) -> Result<(), Refused> {
        let mut first: Option<RawFd> = None;
        for tid in tids {
            let event = match make(*tid) {
                Ok(event) => event,
                // It has ended by now.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) if first.is_none() => return Err(Refused::Other(error)),
                Err(_) => {
                    self.left_out.insert(*tid);
                    continue;
                }
            };
            match first {
                None => {
                    let buffer = event.sampled(bytes).map_err(Refused::Memory)?;
                    first = Some(buffer.as_raw_fd());
                    self.buffers.push((buffer, numbered(cpu)));
                }
                Some(first) => {
                    let has_room = descriptors.has_room_beside(&event, tids.len());
                    match has_room && write_to(&event, first).is_ok() {
                        true => self.events.push((*tid, event)),
                        false => _ = self.left_out.insert(*tid),
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes all records that there are, with the number of their processor; those of a processor in their order. Returns
    /// whether a buffer may have had no room for more.
    pub(crate) fn take(&mut self, mut each: impl FnMut(u16, &Record<'_>)) -> bool {
        let mut was_full = false;
        for (buffer, cpu) in &mut self.buffers {
            let mut taken = 0;
            while let Some(record) = buffer.next_record() {
                taken += RECORD_HEAD + record.len();
                each(*cpu, &record);
            }
            was_full |= taken >= self.full;
        }
        was_full
    }
}

/// The number of a processor as a switch has it.
fn numbered(cpu: usize) -> u16 {
    u16::try_from(cpu).unwrap_or(NO_CPU)
}

/// Whether this user may not have it.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
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
    use std::cell::Cell;
    use std::collections::BTreeSet;

    use perf_event::Builder;
    use perf_event::events::Software;

    use super::{ATTEMPTS, Joined, ranges};
    use crate::descriptors::Descriptors;

    /// The threads that have events, and those that are left out, where `list` names threads; `None`: not on this host.
    fn begun(list: impl Fn(u32) -> BTreeSet<u32>) -> Option<(usize, BTreeSet<u32>, u32)> {
        let calls = Cell::new(0);
        let listed = || Ok(list(calls.replace(calls.get() + 1)));
        let prepare = || Builder::new(Software::DUMMY);
        let joined = Joined::begin(listed, Descriptors::now(), (prepare, 64));
        let joined = joined
            .inspect_err(|error| println!("not tested: {error}"))
            .ok()?;
        let with_events = (joined.events.len() + joined.buffers.len()) / joined.buffers.len();
        Some((with_events, joined.left_out, calls.get()))
    }

    #[test]
    fn threads_that_begin_meanwhile() {
        let own = rustix::thread::gettid().as_raw_pid().cast_unsigned();
        let (first, process) = (BTreeSet::from([own]), std::process::id());
        let both = BTreeSet::from([own, process]);
        let later = |call| {
            if call == 0 {
                first.clone()
            } else {
                both.clone()
            }
        };
        if let Some(begun) = begun(later) {
            assert_eq!(begun, (2, BTreeSet::new(), 3));
        }
        // Each time another one, beyond the numbers that the kernel gives.
        let always_new = |call| BTreeSet::from([own, (1 << 30) + call]);
        if let Some(begun) = begun(always_new) {
            let last = BTreeSet::from([(1 << 30) + ATTEMPTS]);
            assert_eq!(begun, (1, last, ATTEMPTS + 1));
        }
    }

    #[test]
    fn processors() {
        assert_eq!(ranges("0-2,5\n"), Some(vec![0, 1, 2, 5]));
        assert_eq!(ranges("0"), Some(vec![0]));
        assert_eq!(ranges("all"), None);
    }
}
