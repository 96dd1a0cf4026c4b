//! Requests to a traced process through the mailbox in its ring file.
//!
//! A request is a text, and so is its answer; this module carries them without reading them. One
//! controller at a time holds the mailbox, by a file lock that ends with its process.

use std::cell::Cell;
use std::time::{Duration, Instant};

use ringmark_ring::file_lock;
use ringmark_ring::mailbox::{Answer, Mailbox, Withdrawal};

use crate::error::ReaderError;
use crate::sessions::session::Session;

/// How often the reader looks, also for an answer whose wake-up it missed.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Longest wait for a process that keeps reporting progress, in multiples of the limit.
const LIMITS_MAX: u32 = 30;

/// Sends one request and waits for its answer: at most `limit` since the process last reported
/// progress. The session must be open with [`crate::Access::Control`].
///
/// # Errors
/// - [`ReaderError::Control`]: control is off, the process is gone, or another controller is at
///   work. Also if no answer came in time; then the request was withdrawn and nothing of it was
///   done.
/// - [`ReaderError::Mailbox`]: the mailbox could not be mapped.
/// - [`ReaderError::Unfinished`]: the process began the request, and its outcome is not known.
///
/// An answer that refuses the request is an answer, not an error.
pub fn request(session: &Session, text: &str, limit: Duration) -> Result<Answer, ReaderError> {
    let offset = session.header().mailbox_offset;
    if offset == 0 {
        return Err(refused(session, "its session has no control (control=off)"));
    }
    if session.ended() {
        return Err(refused(session, "it has ended or closed its session"));
    }
    session.check_size()?;
    let mailbox = session.mailbox().of(session.ring());
    let mailbox = mailbox.map_err(|source| ReaderError::Mailbox {
        pid: session.pid(),
        source,
    })?;
    let mailbox =
        mailbox.ok_or_else(|| refused(session, "its mailbox is outside the ring file"))?;
    let exchange = Exchange {
        session,
        mailbox,
        begin: Instant::now(),
        progress: Cell::new(SeenProgress {
            value: mailbox.progress(),
            since: Instant::now(),
        }),
        limit,
    };
    exchange.take_lock(offset)?;
    let answer = exchange.run(text);
    // An error here changes nothing: the lock also ends with the open file.
    let _ = file_lock::release_exclusive(session.ring().file(), offset);
    answer
}

/// Sends one request to all these sessions of a process, and returns what each said, in their order.
/// They are asked one after the other: no two mailboxes are held at a time, so two controllers never
/// wait for each other. Where there are several, an error names the ring file.
#[must_use]
pub fn request_all(
    sessions: &[Session],
    text: &str,
    limit: Duration,
) -> Vec<Result<Answer, ReaderError>> {
    let ask = |session: &Session| match request(session, text, limit) {
        Err(ReaderError::Control { pid, reason }) if sessions.len() > 1 => {
            let file = session.path().file_name().unwrap_or_default();
            let reason = format!("{}: {reason}", file.to_string_lossy());
            Err(ReaderError::Control { pid, reason })
        }
        other => other,
    };
    sessions.iter().map(ask).collect()
}

fn refused(session: &Session, reason: &str) -> ReaderError {
    ReaderError::Control {
        pid: session.pid(),
        reason: reason.to_owned(),
    }
}

/// One request on its way.
struct Exchange<'s> {
    session: &'s Session,
    mailbox: Mailbox<'s>,
    begin: Instant,
    progress: Cell<SeenProgress>,
    limit: Duration,
}

fn rest() {
    std::thread::sleep(LOOK_EVERY);
}

/// The progress counter of the process's work.
#[derive(Clone, Copy)]
struct SeenProgress {
    value: u64,
    /// When this value was first seen.
    since: Instant,
}

impl Exchange<'_> {
    fn take_lock(&self, offset: u64) -> Result<(), ReaderError> {
        let look = || file_lock::hold_exclusive(self.session.ring().file(), offset).ok();
        let taken = self.until(look, rest)?;
        taken.ok_or_else(|| self.late("another controller holds its mailbox"))
    }

    fn run(&self, text: &str) -> Result<Answer, ReaderError> {
        let number = self.until(|| self.mailbox.request(text), rest)?;
        let number = number.ok_or_else(|| self.late("it has not ended an earlier request"))?;
        self.mailbox.wake();
        let answered = || (self.mailbox.answered() == number).then_some(());
        let wait = || {
            if !self.mailbox.wait_for_answer(number, LOOK_EVERY) {
                rest();
            }
        };
        if self.until(answered, wait)?.is_some() {
            return Ok(self.mailbox.read_answer());
        }
        match self.mailbox.withdraw(number) {
            Withdrawal::Done => {
                let what =
                    "no answer; is it stopped? The request was taken back, nothing of it is done";
                return Err(self.late(what));
            }
            // The process took the request just before it was withdrawn.
            Withdrawal::Begun if self.until(answered, wait)?.is_some() => {
                return Ok(self.mailbox.read_answer());
            }
            Withdrawal::Begun => {}
        }
        Err(ReaderError::Unfinished {
            pid: self.session.pid(),
            waited: self.begin.elapsed(),
        })
    }

    fn late(&self, what: &str) -> ReaderError {
        let waited = self.begin.elapsed().as_secs_f64();
        refused(self.session, &format!("{what} (waited {waited:.1} s)"))
    }

    /// Looks until there is something, and rests in between. `None`: the process reported no progress
    /// within the limit.
    ///
    /// # Errors
    /// The process ended.
    fn until<T>(
        &self,
        mut look: impl FnMut() -> Option<T>,
        rest: impl Fn(),
    ) -> Result<Option<T>, ReaderError> {
        loop {
            if let Some(found) = look() {
                return Ok(Some(found));
            }
            if self.session.ended() {
                return Err(refused(self.session, "it ended before it answered"));
            }
            if self.is_over() {
                return Ok(None);
            }
            rest();
        }
    }

    fn is_over(&self) -> bool {
        let now = Instant::now();
        let (seen, value) = (self.progress.get(), self.mailbox.progress());
        if value != seen.value && now < self.begin + self.limit * LIMITS_MAX {
            self.progress.set(SeenProgress { value, since: now });
            return false;
        }
        now >= seen.since + self.limit
    }
}
