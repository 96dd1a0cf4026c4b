//! A thread that is on its way into the code, or in it: what became of it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::calls;
use crate::error::LoadError;
use crate::injection::Injection;
use crate::loaded::{Loaded, Way};
use crate::maps;
use crate::ptrace::{self, NotStopped};
use crate::source::{self, Source};
use crate::target;
use crate::trampoline::{self, Mailbox};

/// How long the loader may take: it reads files.
const LOADER_LIMIT: Duration = Duration::from_secs(30);
const GLANCE: Duration = Duration::from_micros(30);

/// The code in the target, and the thread that shall enter it.
pub(crate) struct Entered {
    pub(crate) tid: i32,
    pub(crate) at: u64,
    pub(crate) length: u64,
    pub(crate) mailbox: u64,
    pub(crate) nonce: u64,
    pub(crate) since: Instant,
    pub(crate) way: Way,
}

impl Injection<'_> {
    fn look(&self, entered: &Entered) -> Mailbox {
        let words = self
            .memory
            .words::<{ trampoline::MAILBOX_WORDS }>(entered.mailbox);
        Mailbox::of(words.unwrap_or_default(), entered.nonce)
    }

    pub(crate) fn await_begin(&self, entered: &Entered, patience: Duration) -> bool {
        let end = (Instant::now() + patience).min(self.end);
        while Instant::now() < end {
            if self.look(entered).has_begun {
                return true;
            }
            thread::sleep(GLANCE);
        }
        false
    }

    /// Puts a return address back; false if the thread has come to the code after all.
    pub(crate) fn undo(
        &mut self,
        entered: &Entered,
        slot: u64,
        resume: u64,
    ) -> Result<bool, LoadError> {
        let entry = (entered.at + trampoline::ENTRY).to_le_bytes();
        let until = Instant::now() + LOADER_LIMIT;
        let stopped = loop {
            match ptrace::stop(entered.tid) {
                Ok(stopped) => break stopped,
                // No thread uses what it left.
                Err(NotStopped::Gone) => return Ok(true),
                Err(NotStopped::Refused(error)) => return Err(self.failed("ptrace")(error)),
                Err(NotStopped::Stuck | NotStopped::Halted) if Instant::now() < until => {
                    while !calls::let_go_late(entered.tid) && Instant::now() < until {
                        thread::sleep(GLANCE);
                    }
                }
                Err(_) => return Ok(true),
            }
        };
        let Ok(registers) = stopped.registers() else {
            return Ok(true);
        };
        let code = entered.at..entered.at + entered.length;
        let has_begun = code.contains(&registers.rip) || self.look(entered).has_begun;
        if !has_begun && self.memory.bytes(slot, 8).is_ok_and(|found| found == entry) {
            let put_back = self.memory.write(slot, &resume.to_le_bytes());
            put_back.map_err(self.failed("putting a return address back"))?;
        }
        // No thread comes here any more: the next attempt may have the place.
        if !has_begun {
            let blank = vec![0; entered.length as usize];
            let _ = self.memory.write(entered.at, &blank);
        }
        self.let_go(stopped, &registers);
        Ok(!has_begun)
    }

    /// Fetches the results and lets the thread go back to its work.
    pub(crate) fn finish(&mut self, entered: &Entered) -> Result<Loaded, LoadError> {
        let start = Instant::now();
        let mut seen = false;
        let mut filled = None;
        let mailbox = loop {
            let mailbox = self.look(entered);
            seen |= mailbox.has_begun;
            if let (Some(fd), None) = (mailbox.empty, &filled) {
                filled = Some(self.fill(entered, fd));
            }
            if mailbox.is_done {
                break mailbox;
            }
            let is_over = seen && !mailbox.has_begun;
            if is_over || target::status(self.pid, entered.tid).is_none() {
                return self.missed(entered);
            }
            if start.elapsed() > LOADER_LIMIT {
                let waited = start.elapsed();
                return Err(LoadError::StillLoading {
                    pid: self.pid,
                    tid: entered.tid,
                    waited,
                });
            }
            thread::sleep(GLANCE);
        };
        let message = self
            .memory
            .text(mailbox.message)
            .filter(|_| mailbox.message != 0);
        self.release(entered);
        if let Some(message) = message {
            return Err(self.loader(message));
        }
        if let Some(Err(error)) = filled {
            return Err(self
                .failed("writing the library into a memfd of the target")(
                error
            ));
        }
        if mailbox.handle == 0 {
            let error = io::Error::from_raw_os_error(-(mailbox.result as i32));
            return Err(self.failed("mmap or memfd_create in the target")(error));
        }
        Ok(self.loaded(entered, Some(mailbox.result)))
    }

    /// Writes the library into the memfd that the thread waits for, after its path.
    fn fill(&self, entered: &Entered, fd: u64) -> io::Result<()> {
        let Source::Copy { name, bytes } = &*self.source else {
            return Ok(());
        };
        let file = source::open(self.pid, entered.tid, fd, name)?;
        let (place, digits) = trampoline::descriptor(entered.at, fd);
        self.memory.write(place, &digits)?;
        source::fill(file, bytes)
    }

    fn loader(&self, message: String) -> LoadError {
        LoadError::Loader {
            pid: self.pid,
            path: self.path.to_owned(),
            message,
        }
    }

    fn loaded(&self, entered: &Entered, result: Option<i64>) -> Loaded {
        Loaded {
            tid: entered.tid,
            way: entered.way,
            result: result.map(|result| result as i32),
            stopped: self.longest_stop,
            held: entered.since.elapsed(),
        }
    }

    /// The thread has left without its results having been fetched: the maps tell what became of it.
    fn missed(&self, entered: &Entered) -> Result<Loaded, LoadError> {
        let lines = maps::read(self.pid)?;
        let is_library = |line: &maps::Line| self.source.is(self.path, &line.path);
        if lines.iter().any(is_library) {
            return Ok(self.loaded(entered, None));
        }
        Err(self.loader("the target did not say".into()))
    }

    /// Tells the thread that its results were fetched. It is stopped for that: on its own it
    /// may have left, and its stack be in use again.
    fn release(&mut self, entered: &Entered) {
        let Ok(stopped) = ptrace::stop(entered.tid) else {
            return;
        };
        let code = entered.at..entered.at + entered.length;
        let is_there = stopped
            .registers()
            .is_ok_and(|registers| code.contains(&registers.rip));
        if is_there && self.look(entered).is_done {
            let at = entered.mailbox + trampoline::FETCHED;
            let _ = self.memory.write(at, &1_u64.to_le_bytes());
        }
        self.let_go_as_it_was(stopped);
    }
}
