//! Events of the kernel (`perf_event_open`) for all threads of a process: one for each thread and processor; those of a
//! processor share one buffer. New threads are followed by the kernel.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsRawFd, RawFd};

use perf_event::{Builder, Counter, Record, Sampler};

use crate::descriptors::Descriptors;

/// Bytes of a processor's buffer, the largest that may be had.
const BUFFERS: [usize; 4] = [1 << 20, 512 << 10, 256 << 10, 128 << 10];

/// Bytes of a record's head, and of the largest record.
const RECORD_HEAD: usize = 8;
const LARGEST_RECORD: usize = 16 << 10;

/// Events of the threads of a process.
pub(crate) struct Joined {
    /// Each with its size in bytes.
    buffers: Vec<(Sampler, usize)>,
    /// Events that write to those buffers, and of which threads they are.
    events: Vec<(u32, Counter)>,
    /// Threads that have no event.
    pub(crate) left_out: BTreeSet<u32>,
}

impl Joined {
    /// Begins with those threads. `prepare` says what is wanted of each.
    ///
    /// # Errors
    /// This user may not, on this host.
    pub(crate) fn begin(
        tids: &[u32],
        descriptors: Descriptors,
        prepare: impl Fn() -> Builder<'static>,
    ) -> io::Result<Self> {
        let mut joined = Self {
            buffers: Vec::new(),
            events: Vec::new(),
            left_out: BTreeSet::new(),
        };
        for cpu in online()? {
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
            joined.begin_on_one(tids, descriptors, make)?;
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
        tids: &[u32],
        descriptors: Descriptors,
        make: impl Fn(u32) -> io::Result<Counter>,
    ) -> io::Result<()> {
        let mut first: Option<RawFd> = None;
        for tid in tids {
            let event = match make(*tid) {
                Ok(event) => event,
                // It has ended by now.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => continue,
                Err(error) if first.is_none() => return Err(error),
                Err(_) => {
                    self.left_out.insert(*tid);
                    continue;
                }
            };
            match first {
                None => {
                    let (buffer, bytes) = buffer(event, || make(*tid))?;
                    first = Some(buffer.as_raw_fd());
                    self.buffers.push((buffer, bytes));
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

    /// Takes all records that there are; those of a processor in their order. Returns whether a buffer may have had no
    /// room for more.
    pub(crate) fn take(&mut self, mut each: impl FnMut(&Record<'_>)) -> bool {
        let mut was_full = false;
        for (buffer, bytes) in &mut self.buffers {
            let mut taken = 0;
            while let Some(record) = buffer.next_record() {
                taken += RECORD_HEAD + record.len();
                each(&record);
            }
            was_full |= taken + LARGEST_RECORD >= *bytes;
        }
        was_full
    }
}

/// Whether this user may not have it.
pub(crate) fn is_refusal(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// Gives an event a buffer, the largest that may be had. `again` makes the event once more.
fn buffer(event: Counter, again: impl Fn() -> io::Result<Counter>) -> io::Result<(Sampler, usize)> {
    let mut event = Some(event);
    let mut refused = io::Error::from(io::ErrorKind::OutOfMemory);
    for bytes in BUFFERS {
        let event = match event.take() {
            Some(event) => event,
            None => again()?,
        };
        match event.sampled(bytes) {
            Ok(buffer) => return Ok((buffer, bytes)),
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
