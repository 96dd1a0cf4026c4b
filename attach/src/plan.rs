//! Where a stopped thread is, and what follows from it.

use crate::calls;
use crate::memory::Memory;
use crate::module::{Module, Owner};
use crate::ptrace::Registers;
use crate::unwind::{self, Frame};

/// What can be done with a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It is in the program's own code, called by nothing else, or waits in a call that holds no
    /// lock: it may go to the code at once.
    Now,
    /// It is in a library; the return into the program's own code is here.
    AtReturn {
        /// Where the return address is.
        slot: u64,
        /// The address.
        resume: u64,
    },
    /// It cannot be used where it is.
    No(String),
}

/// What is known of the process.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) modules: &'a [Module],
    /// The program brings its own `malloc`: inside its code an allocator's lock may be held.
    pub(crate) brings_allocator: bool,
    /// The processor checks return addresses.
    pub(crate) has_shadow_stack: bool,
}

impl Surroundings<'_> {
    pub(crate) fn plan(&self, registers: &Registers) -> Plan {
        let mut frames = match unwind::frames(self.memory, self.modules, registers) {
            Ok(frames) => frames,
            Err(lost) => {
                return Plan::No(format!(
                    "its callers cannot be found at {:#x}: what is there was built without unwind \
                     tables, which 'ringmark run' does not need",
                    lost.at
                ));
            }
        };
        if !self.take_start(&mut frames) {
            return Plan::No("it has no caller of the program's own".into());
        }
        let is_foreign =
            |frame: &Frame| frame.is_signal || self.modules[frame.module].owner != Owner::Program;
        let Some(outermost) = frames.iter().rposition(is_foreign) else {
            return self.in_own_code();
        };
        let in_library = &frames[..=outermost];
        if self.is_in_plain_wait(in_library, registers) {
            return Plan::Now;
        }
        self.at_return(&frames, outermost)
    }

    fn in_own_code(&self) -> Plan {
        if self.brings_allocator {
            return Plan::No("the program brings its own malloc, and may be in it".into());
        }
        Plan::Now
    }

    /// Takes away the frames that start every thread; false where nothing is left.
    fn take_start(&self, frames: &mut Vec<Frame>) -> bool {
        let owner = |frame: &Frame| self.modules[frame.module].owner;
        // `_start` is the program's.
        if frames
            .last()
            .is_some_and(|frame| owner(frame) == Owner::Program)
            && frames.len() > 1
        {
            let before = &frames[frames.len() - 2];
            if owner(before) == Owner::Libc {
                frames.pop();
            }
        }
        for _ in 0..2 {
            if frames
                .last()
                .is_some_and(|frame| owner(frame) == Owner::Libc)
            {
                frames.pop();
            }
        }
        frames
            .last()
            .is_some_and(|frame| owner(frame) == Owner::Program)
    }

    /// Names of the function of the frame at `index`, innermost 0.
    fn names<'a>(&'a self, frames: &[Frame], index: usize) -> impl Iterator<Item = &'a str> {
        let is_first = index == 0 || frames[index - 1].is_signal;
        let frame = frames[index];
        self.modules[frame.module].names(frame.inside(is_first))
    }

    /// Nothing but the C library between the system call and the program, and that entered by a
    /// function that waits.
    fn is_in_plain_wait(&self, frames: &[Frame], registers: &Registers) -> bool {
        let is_plain =
            |frame: &Frame| !frame.is_signal && self.modules[frame.module].owner == Owner::Libc;
        calls::is_waiting(registers)
            && frames.iter().all(is_plain)
            && self
                .names(frames, frames.len() - 1)
                .any(|name| calls::is_wait(name, self.brings_allocator))
    }

    fn at_return(&self, frames: &[Frame], outermost: usize) -> Plan {
        let place = self.place(frames, outermost);
        if self.brings_allocator {
            return Plan::No(format!("the program brings its own malloc; {place}"));
        }
        if self.has_shadow_stack {
            return Plan::No(format!("{place}, and has a shadow stack"));
        }
        let frame = frames[outermost];
        let (Some(slot), Some(caller)) = (frame.slot, frames.get(outermost + 1)) else {
            return Plan::No(place);
        };
        if frame.is_signal {
            return Plan::No("in a signal handler".into());
        }
        let twice = |index| self.names(frames, index).any(calls::returns_twice);
        if (0..=outermost).any(twice) {
            return Plan::No(place);
        }
        let resume = caller.pc;
        let is_return = self.memory.word(slot).is_ok_and(|found| found == resume);
        if !is_return || frame.stack_after != slot + 8 || !self.is_after_call(resume) {
            return Plan::No(format!("its callers cannot be found at {resume:#x}"));
        }
        Plan::AtReturn { slot, resume }
    }

    /// Whether a call instruction ends at `at`.
    fn is_after_call(&self, at: u64) -> bool {
        let Ok(bytes) = self.memory.bytes(at - 7, 7) else {
            return false;
        };
        let is_indirect = |length: usize| {
            let call = &bytes[7 - length..];
            call[0] == 0xff && call[1] & 0x38 == 0x10
        };
        bytes[2] == 0xe8 || (2..=7).any(is_indirect)
    }

    fn place(&self, frames: &[Frame], index: usize) -> String {
        let module = &self.modules[frames[index].module];
        let name = module.path.rsplit('/').next().unwrap_or_default();
        match self.names(frames, index).next() {
            Some(function) => format!("in {function} of {name}"),
            None => format!("in {name}"),
        }
    }
}
