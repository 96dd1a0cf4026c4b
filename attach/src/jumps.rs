//! Jumps in the place of several instructions of a process that runs. All its threads are stopped, and none may be between
//! those instructions, in a handler's frame either; each jump is one write.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::thread;
use std::time::Duration;

use crate::error::LoadError;
use crate::jump::{JUMP_BYTES, Jump, PutJumps};
use crate::maps::{self, Line};
use crate::memory::Memory;
use crate::stopped_process::{LateThreads, StoppedProcess, Unstoppable};
use crate::target;

/// How often threads are stopped for one list, and how long they run between at least: twice as long each time.
const STOPS_MAX: u32 = 6;
const PAUSE: Duration = Duration::from_millis(10);
/// How long threads are waited for that did not stop in time.
const LATE_LIMIT: Duration = Duration::from_millis(500);
/// Bytes of all stacks at most: so long would the threads stand still.
const STACKS_MAX: u64 = 64 << 20;
const CHUNK_BYTES: u64 = 256 << 10;
const PAGE_BYTES: u64 = 4096;

const BETWEEN: &str = "a thread is between the instructions that a jump would replace";
const CHANGED: &str = "its code is not that of its file";
const TWO_PAGES: &str = "a jump would lie on two pages";

/// Puts `jumps` into the process `pid`.
pub(crate) fn put(pid: i32, jumps: &[Jump]) -> Result<PutJumps, LoadError> {
    target::check(pid)?;
    let memory = Memory::open(pid).map_err(|error| target::unreadable(pid, "its memory", error))?;
    let mut report = PutJumps::default();
    let (mut left, on_two): (Vec<_>, Vec<_>) =
        jumps.iter().copied().partition(Jump::is_on_one_page);
    report
        .left
        .extend(on_two.iter().map(|jump| (jump.at, TWO_PAGES)));
    left.sort_unstable_by_key(|jump| jump.at);
    let (mut obstacle, mut late) = (None, LateThreads::default());
    while !left.is_empty() && report.stops < STOPS_MAX {
        if report.stops > 0 {
            thread::sleep(PAUSE * (1 << report.stops));
        }
        if late.let_go(LATE_LIMIT) {
            break;
        }
        report.stops += 1;
        match StoppedProcess::stop(pid, &mut late) {
            Ok(process) => {
                obstacle = None;
                left = put_now(pid, &memory, &process, left, &mut report)?;
                let since = process.since();
                drop(process);
                report.longest_stop = report.longest_stop.max(since.elapsed());
            }
            Err(Unstoppable::NotNow(tid, why)) => {
                obstacle = Some((tid, why));
                late.let_go(LATE_LIMIT);
            }
            Err(Unstoppable::Error(error)) => return Err(error),
        }
    }
    if let Some((tid, why)) = obstacle {
        return Err(LoadError::NotStopped { pid, tid, why });
    }
    report
        .left
        .extend(left.iter().map(|jump| (jump.at, BETWEEN)));
    Ok(report)
}

/// Puts those where no thread is, and returns the others.
fn put_now(
    pid: i32,
    memory: &Memory,
    process: &StoppedProcess,
    jumps: Vec<Jump>,
    report: &mut PutJumps,
) -> Result<Vec<Jump>, LoadError> {
    let lines = maps::read(pid)?;
    let mut places = Places {
        pid,
        memory,
        lines: &lines,
        jumps: &jumps,
        occupied: BTreeSet::new(),
        seen: Vec::new(),
        bytes: 0,
        leads_to_signal_return: BTreeMap::new(),
    };
    for (_, registers) in process.registers() {
        // A call that goes on begins at its `syscall` again.
        let again = (registers.orig_rax.cast_signed() >= 0).then(|| registers.rip - 2);
        [Some(registers.rip), again]
            .into_iter()
            .flatten()
            .for_each(|at| places.look_at(at));
        if !places.look_through(registers.rsp)? {
            return Err(LoadError::Unsuitable {
                pid,
                reason: "a thread has its stack where no memory is: nobody can say where it goes on",
            });
        }
    }
    let occupied = places.occupied;
    let (later, now): (Vec<_>, Vec<_>) = jumps
        .into_iter()
        .partition(|jump| occupied.contains(&jump.at));
    // One read and one write for the jumps of a page: the threads stand still meanwhile, and the kernel writes a page whole.
    for jumps in now.chunk_by(|one, next| one.page() == next.page()) {
        let Some(page) = jumps.first().map(Jump::page) else {
            continue;
        };
        let before = memory.bytes(page, PAGE_BYTES as usize).unwrap_or_default();
        let mut bytes = before.clone();
        for jump in jumps {
            let from = (jump.at - page) as usize;
            match bytes.get_mut(from..from + JUMP_BYTES) {
                Some(place) if *place == jump.expected => {
                    place.copy_from_slice(&jump.code);
                    report.put += 1;
                }
                _ => report.left.push((jump.at, CHANGED)),
            }
        }
        if bytes != before {
            let written = memory.write(page, &bytes);
            written.map_err(|error| LoadError::Failed {
                pid,
                what: "writing jumps",
                error,
            })?;
        }
    }
    Ok(later)
}

impl Jump {
    fn is_on_one_page(&self) -> bool {
        self.page() == (self.at + JUMP_BYTES as u64 - 1) / PAGE_BYTES * PAGE_BYTES
    }

    /// Address of the page that it begins on.
    fn page(&self) -> u64 {
        self.at / PAGE_BYTES * PAGE_BYTES
    }
}

/// Where threads may go on.
struct Places<'a> {
    pid: i32,
    memory: &'a Memory,
    lines: &'a [Line],
    /// Sorted.
    jumps: &'a [Jump],
    /// Jumps between whose instructions a thread may be, by their addresses.
    occupied: BTreeSet<u64>,
    /// Parts of stacks that were looked through.
    seen: Vec<Range<u64>>,
    bytes: u64,
    /// By address of code.
    leads_to_signal_return: BTreeMap<u64, bool>,
}

impl Places<'_> {
    /// A place where a thread may go on.
    fn look_at(&mut self, at: u64) {
        let behind = self.jumps.partition_point(|jump| jump.at < at);
        let before = behind
            .checked_sub(1)
            .and_then(|place| self.jumps.get(place));
        if let Some(jump) = before.filter(|jump| at < jump.at + JUMP_BYTES as u64) {
            self.occupied.insert(jump.at);
        }
    }

    /// All words of a stack, and those of the stacks that handlers on it have interrupted. `false`: there is no stack.
    fn look_through(&mut self, stack: u64) -> Result<bool, LoadError> {
        let mut stacks = vec![stack];
        let is_there = self.stack_at(stack).is_some();
        while let Some(stack) = stacks.pop() {
            let Some(range) = self.stack_at(stack).and_then(|stack| self.rest_of(stack)) else {
                continue;
            };
            self.bytes += range.end - range.start;
            if self.bytes > STACKS_MAX {
                return Err(LoadError::Unsuitable {
                    pid: self.pid,
                    reason: "its stacks are more than 64 MiB: it would stand still too long",
                });
            }
            self.seen.push(range.clone());
            stacks.extend(self.look_through_words(range)?);
        }
        Ok(is_there)
    }

    /// From a stack pointer to the end of its mapping. The first thread's stack may not have grown to it yet.
    fn stack_at(&self, pointer: u64) -> Option<Range<u64>> {
        let place = self.lines.partition_point(|line| line.range.end <= pointer);
        let line = self.lines.get(place)?;
        let is_in_reach = line.range.start <= pointer || line.path == "[stack]";
        is_in_reach.then(|| (pointer & !7).max(line.range.start)..line.range.end)
    }

    /// What of it has not been looked through.
    fn rest_of(&self, stack: Range<u64>) -> Option<Range<u64>> {
        let overlaps = |seen: &&Range<u64>| stack.start < seen.end && seen.end <= stack.end;
        let seen_from = self
            .seen
            .iter()
            .filter(overlaps)
            .map(|seen| seen.start)
            .min();
        let rest = stack.start..seen_from.unwrap_or(stack.end);
        (rest.start < rest.end).then_some(rest)
    }

    /// Returns the stack pointers that signals have interrupted.
    fn look_through_words(&mut self, range: Range<u64>) -> Result<Vec<u64>, LoadError> {
        let pid = self.pid;
        let failed = |error| LoadError::Failed {
            pid,
            what: "reading a stack",
            error,
        };
        let mut interrupted = Vec::new();
        for start in range.clone().step_by(CHUNK_BYTES as usize) {
            let length = (range.end - start).min(CHUNK_BYTES) as usize;
            let bytes = self.memory.bytes(start, length).map_err(failed)?;
            for (at, word) in (start..).step_by(8).zip(bytes.chunks_exact(8)) {
                let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
                self.look_at(word);
                if self.is_signal_return(word)
                    && let Ok(saved) = self.memory.word(at + SAVED_RSP)
                {
                    interrupted.push(saved);
                }
            }
        }
        Ok(interrupted)
    }

    /// Whether a word is the address of code that returns from a signal.
    fn is_signal_return(&mut self, word: u64) -> bool {
        let place = self.lines.partition_point(|line| line.range.end <= word);
        let line = self.lines.get(place);
        if !line.is_some_and(|line| line.is_executable && line.range.contains(&word)) {
            return false;
        }
        let memory = self.memory;
        let is = || {
            let code = memory.bytes(word, SIGNAL_RETURN[0].len());
            code.is_ok_and(|code| SIGNAL_RETURN.iter().any(|known| code.starts_with(known)))
        };
        *self.leads_to_signal_return.entry(word).or_insert_with(is)
    }
}

/// `mov $15, %rax; syscall`, as C libraries have it.
const SIGNAL_RETURN: [&[u8]; 2] = [
    &[0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05],
    &[0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05],
];
/// From that address on the stack to the saved stack pointer: the address itself, five words of the context, and
/// fifteen registers.
const SAVED_RSP: u64 = 8 + 5 * 8 + 15 * 8;

#[cfg(test)]
mod tests {
    use super::*;

    const JUMPS: [Jump; 2] = [jump(0x1000), jump(0x1005)];

    const fn jump(at: u64) -> Jump {
        Jump {
            at,
            expected: [0x90; 5],
            code: [0xe9, 0, 0, 0, 0],
        }
    }

    #[test]
    fn a_place_between_two_instructions_is_occupied_and_stacks_are_known() {
        let pid = std::process::id().cast_signed();
        let memory = Memory::open(pid).expect("own memory");
        let lines = maps::read(pid).expect("own maps");
        let places = |lines| Places {
            pid,
            memory: &memory,
            lines,
            jumps: &JUMPS,
            occupied: BTreeSet::new(),
            seen: Vec::new(),
            bytes: 0,
            leads_to_signal_return: BTreeMap::new(),
        };
        for (at, expected) in [
            (0xfff, None),
            (0x1000, None),
            (0x1001, Some(0x1000)),
            (0x1004, Some(0x1000)),
            (0x1005, None),
            (0x1009, Some(0x1005)),
            (0x100a, None),
        ] {
            let mut places = places(&lines);
            places.look_at(at);
            assert_eq!(places.occupied.first().copied(), expected, "{at:#x}");
        }
        let line = |range: Range<u64>, path: &str| Line {
            range,
            path: path.to_owned(),
            ..lines[0].clone()
        };
        let known = [line(0x1000..0x2000, ""), line(0x5000..0x6000, "[stack]")];
        let mut places = places(&known);
        assert_eq!(places.stack_at(0x1803), Some(0x1800..0x2000));
        assert_eq!(
            places.stack_at(0x4ff0),
            Some(0x5000..0x6000),
            "it will grow"
        );
        assert_eq!(places.stack_at(0x800), None);
        assert_eq!(places.stack_at(0x7000), None);
        places.seen.push(0x1900..0x2000);
        assert_eq!(places.rest_of(0x1800..0x2000), Some(0x1800..0x1900));
        assert_eq!(places.rest_of(0x1a00..0x2000), None);
    }

    #[test]
    fn a_jump_lies_on_one_page() {
        assert!(jump(0xffb).is_on_one_page());
        assert!(!jump(0xffc).is_on_one_page());
    }
}
