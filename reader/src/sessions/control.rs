//! Requests to a traced process through its mailbox.

use std::cell::Cell;
use std::time::{Duration, Instant};

use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_ring::mailbox::{Answer, Mailbox, Withdrawal};
use ringmark_ring::ring_file::SYSTEM_PAGE;
use ringmark_ring::{Mapping, lock};

use crate::error::ReaderError;
use crate::sessions::session::Session;

/// How often the answer is looked for. The helper thread answers within a fraction of this.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// A process that keeps saying that it works is waited for at most this many times the limit.
const LIMITS_MAX: u32 = 30;

/// Sends one request and waits for its answer: at most `limit`, and longer as long as the process
/// says that it works. The session must be open with [`crate::Access::Control`].
///
/// # Errors
/// [`ReaderError::Control`]: control is off, the process is gone, another controller is at work,
/// or no answer came in time: then the request was taken back, and nothing of it is done.
/// [`ReaderError::Unfinished`]: it was begun, and what becomes of it is not known. An answer that
/// says "no" is an answer.
pub fn request(session: &Session, text: &str, limit: Duration) -> Result<Answer, ReaderError> {
    let offset = session.header().mailbox_offset;
    if offset == 0 {
        return Err(refused(session, "its session has no control (control=off)"));
    }
    if session.ended() {
        return Err(refused(session, "it has ended or closed its session"));
    }
    let (map, within) = map_mailbox(session, offset)?;
    let mailbox = map
        .words(within, MAILBOX_BYTES as u64)
        .and_then(Mailbox::over)
        .ok_or_else(|| refused(session, "its mailbox lies outside the ring file"))?;
    let exchange = Exchange {
        session,
        mailbox,
        begin: Instant::now(),
        moved: Cell::new((mailbox.progress(), Instant::now())),
        limit,
    };
    exchange.take_lock(offset)?;
    let answer = exchange.run(text);
    // The lock also ends with the file; an error here changes nothing.
    let _ = lock::release_exclusive(session.ring().file(), offset);
    answer
}

/// A writable mapping of the mailbox, and the mailbox's place in it.
fn map_mailbox(session: &Session, offset: u64) -> Result<(Mapping, u64), ReaderError> {
    session.check_size()?;
    let within = offset % SYSTEM_PAGE;
    let bytes = within as usize + MAILBOX_BYTES;
    let start = offset - within;
    if start + bytes as u64 > session.ring().map().bytes() {
        return Err(refused(session, "its mailbox lies outside the ring file"));
    }
    let map = Mapping::writable(session.ring().file(), start, bytes);
    let map = map.map_err(|error| refused(session, &format!("mapping its mailbox: {error}")))?;
    Ok((map, within))
}

fn refused(session: &Session, reason: &str) -> ReaderError {
    ReaderError::Control {
        pid: session.pid(),
        reason: reason.to_owned(),
    }
}

struct Exchange<'s> {
    session: &'s Session,
    mailbox: Mailbox<'s>,
    begin: Instant,
    /// The progress of the process's work, and when it was first seen.
    moved: Cell<(u64, Instant)>,
    limit: Duration,
}

impl Exchange<'_> {
    fn take_lock(&self, offset: u64) -> Result<(), ReaderError> {
        let look = || lock::hold_exclusive(self.session.ring().file(), offset).ok();
        let taken = self.until(look)?;
        taken.ok_or_else(|| self.late("another controller holds its mailbox"))
    }

    fn run(&self, text: &str) -> Result<Answer, ReaderError> {
        let number = self.until(|| self.mailbox.request(text))?;
        let number = number.ok_or_else(|| self.late("it has not ended an earlier request"))?;
        self.mailbox.wake();
        let answered = || (self.mailbox.answered() == number).then_some(());
        if self.until(answered)?.is_some() {
            return Ok(self.mailbox.read_answer());
        }
        match self.mailbox.withdraw(number) {
            Withdrawal::Done => {
                let what =
                    "no answer; is it stopped? The request was taken back, nothing of it is done";
                return Err(self.late(what));
            }
            // It may have begun just now.
            Withdrawal::Begun if self.until(answered)?.is_some() => {
                return Ok(self.mailbox.read_answer());
            }
            Withdrawal::Begun | Withdrawal::Unknown => {}
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

    /// Looks until there is something, or the process ends. `None`: for so long as the limit says it
    /// did not say that it works.
    fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> Result<Option<T>, ReaderError> {
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
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn is_over(&self) -> bool {
        let now = Instant::now();
        let (progress, since) = self.moved.get();
        let found = self.mailbox.progress();
        if found != progress && now < self.begin + self.limit * LIMITS_MAX {
            self.moved.set((found, now));
            return false;
        }
        now >= since + self.limit
    }
}
