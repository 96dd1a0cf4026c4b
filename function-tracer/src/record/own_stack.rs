//! Finds where a thread's own stack lies. It allocates nothing, because a thread's first call may
//! come inside `malloc` or a signal handler.

use core::ops::Range;
use std::os::fd::OwnedFd;

use ringmark::__private::foreign::mapping_at;
use rustix::fs::{Mode, OFlags};

/// The addresses of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stack {
    /// The lowest address.
    pub(crate) low: u64,
    pub(crate) bytes: u64,
}

impl Stack {
    fn holds(self, address: u64) -> bool {
        address.wrapping_sub(self.low) < self.bytes
    }
}

/// Bytes of a main thread's stack at most, also where the system sets no limit.
const MAIN_BYTES_MAX: u64 = 1 << 30;

/// The stack of this thread, of which `here` may be an address. The main thread's is the mapping that the kernel calls `[stack]`. Any
/// other lies below the thread's control block, which glibc and musl put at its top.
pub(crate) fn find(here: u64) -> Option<Stack> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let maps = rustix::fs::open(c"/proc/self/maps", flags, Mode::empty()).ok()?;
    let is_main = rustix::thread::gettid() == rustix::process::getpid();
    let control = control_block();
    if !is_main && let Some(stack) = below(mapping_at(&maps, control), control, here) {
        return Some(stack);
    }
    find_in_text(&maps, control, here, is_main)
}

/// The part of a mapping below the control block, if the thread runs on it.
fn below(mapping: Option<Range<u64>>, control: u64, here: u64) -> Option<Stack> {
    let low = mapping?.start;
    let bytes = control - low;
    let stack = Stack { low, bytes };
    stack.holds(here).then_some(stack)
}

/// As [`find`], out of the text of all mappings: the more threads there are, the longer it is.
fn find_in_text(maps: &OwnedFd, control: u64, here: u64, is_main: bool) -> Option<Stack> {
    let mut main = None;
    let mut other = None;
    for_each_mapping(maps, |low, high, is_stack| {
        if is_stack {
            main = Some(main_stack(high));
        }
        if (low..high).contains(&control) {
            other = Some(Stack {
                low,
                bytes: control - low,
            });
        }
    })?;
    // In a handler on another stack, the kind of the thread decides.
    main.filter(|stack| stack.holds(here))
        .or(other.filter(|stack| stack.holds(here)))
        .or(if is_main { main } else { other })
}

fn main_stack(high: u64) -> Stack {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack).current;
    let bytes = limit.unwrap_or(MAIN_BYTES_MAX).min(MAIN_BYTES_MAX);
    Stack {
        low: high.saturating_sub(bytes),
        bytes: bytes.min(high),
    }
}

/// Address of the thread's control block.
fn control_block() -> u64 {
    let address: u64;
    // SAFETY: record invariant 10.
    unsafe {
        core::arch::asm!(
            "mov {address}, qword ptr fs:[0]",
            address = out(reg) address,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    address
}

/// Calls `to` with the ends of each mapping in the open file `/proc/self/maps`, and whether it is
/// named `[stack]`. `None`: the file cannot be read.
fn for_each_mapping(maps: &OwnedFd, mut to: impl FnMut(u64, u64, bool)) -> Option<()> {
    let mut buffer = [0_u8; 4096];
    let mut filled = 0;
    loop {
        let got = rustix::io::read(maps, buffer.get_mut(filled..)?).ok()?;
        if got == 0 {
            return Some(());
        }
        filled += got;
        let mut rest = 0;
        while let Some(end) = buffer[rest..filled].iter().position(|b| *b == b'\n') {
            if let Some((low, high)) = range(&buffer[rest..rest + end]) {
                to(low, high, buffer[rest..rest + end].ends_with(b"[stack]"));
            }
            rest += end + 1;
        }
        buffer.copy_within(rest..filled, 0);
        filled -= rest;
        if filled == buffer.len() {
            filled = 0; // A line longer than the buffer names a file; it is no stack.
        }
    }
}

/// The ends of a mapping: `low-high` at the start of a line.
fn range(line: &[u8]) -> Option<(u64, u64)> {
    let dash = line.iter().position(|b| *b == b'-')?;
    let end = line.iter().position(|b| *b == b' ')?;
    Some((hex(line.get(..dash)?)?, hex(line.get(dash + 1..end)?)?))
}

fn hex(text: &[u8]) -> Option<u64> {
    let digit = |b: u8| (b as char).to_digit(16).map(u64::from);
    text.iter()
        .try_fold(0_u64, |n, b| Some(n << 4 | digit(*b)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> u64 {
        let local = 0_u8;
        core::ptr::from_ref(core::hint::black_box(&local)) as u64
    }

    fn is_here(stack: Stack) -> bool {
        stack.holds(here())
    }

    /// Bytes that this thread has read from files.
    fn bytes_read() -> u64 {
        let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        let line = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        line.unwrap().parse().unwrap()
    }

    /// So 2,000 threads that start take 2,000 times as long as one, not the square of it.
    #[test]
    fn a_thread_reads_no_more_with_more_mappings() {
        let maps = std::fs::File::open("/proc/self/maps").unwrap();
        if mapping_at(&maps.into(), control_block()).is_none() {
            return println!("skipped: this kernel does not know the query (before Linux 6.11)");
        }
        let find = || {
            let before = bytes_read();
            let stack = find(here()).unwrap();
            let read = bytes_read() - before;
            (stack, find_in_own_text(), read)
        };
        let (stack, by_text, read) = std::thread::spawn(find).join().unwrap();
        assert_eq!(stack, by_text);
        // The text of a process with threads is more than 4 KiB; the figures themselves are 200 bytes.
        assert!(read < 512, "{read} bytes");
    }

    fn find_in_own_text() -> Stack {
        let maps = OwnedFd::from(std::fs::File::open("/proc/self/maps").unwrap());
        find_in_text(&maps, control_block(), here(), false).unwrap()
    }

    #[test]
    fn every_thread_finds_the_stack_that_it_runs_on() {
        let threads: Vec<_> = (0..4)
            .map(|_| std::thread::spawn(|| find(here()).unwrap()))
            .collect();
        let stacks: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        assert!(is_here(find(here()).unwrap()));
        assert!(stacks.iter().all(|stack| !is_here(*stack)));
        assert!(stacks.iter().all(|stack| stack.bytes >= 1 << 20));
    }

    #[test]
    fn lines_of_the_table_of_mappings() {
        let line = b"7ffc1000-7ffc3000 rw-p 00000000 00:00 0    [stack]";
        assert_eq!(range(line), Some((0x7ffc_1000, 0x7ffc_3000)));
        assert_eq!(range(b"nonsense"), None);
        assert_eq!(range(b"12-zz rw"), None);
    }
}
