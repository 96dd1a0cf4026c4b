//! The terminal while a screen is on it: keys come one by one, without an echo, and the lines that were
//! there come back in the end. However the program ends, the terminal is as it was before.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize,
    tcsetattr,
};

use super::view::Size;

/// Another screen, without a cursor, and lines that are not wrapped.
const BEGIN: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
/// The reverse.
const END: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal that has to be given back if this thread panics.
static TAKEN: Mutex<Option<Taken>> = Mutex::new(None);
/// Panics give it back before they say what happened.
static HAS_HOOK: AtomicBool = AtomicBool::new(false);

/// A terminal, and how it was.
struct Taken {
    keys: OwnedFd,
    screen: OwnedFd,
    before: Termios,
    thread: std::thread::ThreadId,
}

impl Taken {
    /// Gives it back. A failure has no reader.
    fn give_back(self) {
        let _ = write_all(self.screen.as_fd(), END.as_bytes());
        let _ = tcsetattr(&self.keys, OptionalActions::Now, &self.before);
    }
}

/// A terminal that is ours while this lives.
pub(super) struct Terminal {
    keys: OwnedFd,
    screen: OwnedFd,
}

impl Terminal {
    /// Takes the terminal of standard output, with the keys of standard input, or of the terminal that
    /// this process belongs to.
    ///
    /// # Errors
    /// There is none, or it refuses.
    pub(super) fn take() -> io::Result<Self> {
        let keys = match io::stdin() {
            stdin if stdin.is_terminal() => stdin.as_fd().try_clone_to_owned()?,
            _ => File::open("/dev/tty")?.into(),
        };
        Self::of(keys, io::stdout().as_fd().try_clone_to_owned()?)
    }

    fn of(keys: OwnedFd, screen: OwnedFd) -> io::Result<Self> {
        give_back_on_panic();
        let terminal = Self { keys, screen };
        terminal.enter()?;
        Ok(terminal)
    }

    /// Takes it, for the first time or again.
    ///
    /// # Errors
    /// It refuses.
    pub(super) fn enter(&self) -> io::Result<()> {
        self.leave();
        let before = tcgetattr(&self.keys)?;
        let mut ours = before.clone();
        // Ctrl-C and Ctrl-Z stay signals.
        ours.local_modes &= !(LocalModes::ICANON | LocalModes::ECHO);
        ours.input_modes &= !InputModes::IXON;
        ours.special_codes[SpecialCodeIndex::VMIN] = 0;
        ours.special_codes[SpecialCodeIndex::VTIME] = 0;
        let taken = Taken {
            keys: self.keys.try_clone()?,
            screen: self.screen.try_clone()?,
            before,
            thread: std::thread::current().id(),
        };
        if let Ok(mut place) = TAKEN.lock() {
            *place = Some(taken);
        }
        tcsetattr(&self.keys, OptionalActions::Now, &ours)?;
        write_all(self.screen.as_fd(), BEGIN.as_bytes())
    }

    /// Gives it back, for a while or for good.
    pub(super) fn leave(&self) {
        give_back();
    }

    /// Where keys come from.
    pub(super) fn keys(&self) -> BorrowedFd<'_> {
        self.keys.as_fd()
    }

    /// Rows and columns; one that does not say has 24 of 80.
    pub(super) fn size(&self) -> Size {
        let found = tcgetwinsize(&self.screen).ok();
        let found = found.filter(|size| size.ws_row > 0 && size.ws_col > 0);
        found.map_or(
            Size {
                rows: 24,
                columns: 80,
            },
            |size| Size {
                rows: size.ws_row.into(),
                columns: size.ws_col.into(),
            },
        )
    }

    /// Draws a whole screen.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn draw(&self, lines: &[String]) -> io::Result<()> {
        let mut out = String::from("\x1b[H");
        for (number, line) in lines.iter().enumerate() {
            out.push_str(if number > 0 { "\r\n" } else { "" });
            out.push_str(line);
            out.push_str("\x1b[K");
        }
        out.push_str("\x1b[J");
        write_all(self.screen.as_fd(), out.as_bytes())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

fn give_back() {
    let taken = TAKEN.lock().ok().and_then(|mut place| place.take());
    taken.into_iter().for_each(Taken::give_back);
}

/// Gives the terminal back before a panic of its thread is reported, so that the report can be read.
fn give_back_on_panic() {
    if HAS_HOOK.swap(true, Ordering::Relaxed) {
        return;
    }
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |what| {
        let this = std::thread::current().id();
        let is_ours = TAKEN.try_lock().is_ok_and(|place| {
            let taken = place.as_ref();
            taken.is_some_and(|taken| taken.thread == this)
        });
        if is_ours {
            give_back();
        }
        report(what);
    }));
}

fn write_all(to: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    File::from(to.try_clone_to_owned()?).write_all(bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

    use super::*;

    fn state(of: &File) -> String {
        format!("{:?}", tcgetattr(of).unwrap())
    }

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_reported() {
        let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&main).unwrap();
        unlockpt(&main).unwrap();
        let name = ptsname(&main, Vec::new()).unwrap();
        let mut both = File::options();
        both.read(true).write(true);
        let other = both.open(name.to_str().unwrap()).unwrap();
        let before = state(&other);
        let seen = std::sync::Arc::new(Mutex::new(String::new()));
        let (on_report, watched) = (seen.clone(), other.try_clone().unwrap());
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |_| {
            *on_report.lock().unwrap() = state(&watched)
        }));
        let panicking = || {
            let fd = || other.as_fd().try_clone_to_owned().unwrap();
            let terminal = Terminal::of(fd(), fd()).unwrap();
            terminal.draw(&["a".to_owned(), "b".to_owned()]).unwrap();
            assert_ne!(state(&other), before);
            panic!("as planned");
        };
        assert!(catch_unwind(AssertUnwindSafe(panicking)).is_err());
        let _ = std::panic::take_hook();
        std::panic::set_hook(quiet);
        HAS_HOOK.store(false, Ordering::Relaxed);
        assert_eq!(*seen.lock().unwrap(), before, "when it is reported");
        assert_eq!(state(&other), before, "afterwards");
        drop(other);
        let mut written = Vec::new();
        let _ = File::from(main).read_to_end(&mut written);
        // The terminal adds a return to each new line.
        let written = String::from_utf8(written).unwrap().replace("\r\r", "\r");
        assert_eq!(
            written,
            format!("{BEGIN}\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J{END}")
        );
    }
}
