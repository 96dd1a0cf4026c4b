//! Requests to a traced process through its mailbox.

use std::time::{Duration, Instant};

use ringmark_format::mailbox::MAILBOX_BYTES;
use ringmark_ring::mailbox::{Answer, Mailbox};
use ringmark_ring::ring_file::SYSTEM_PAGE;
use ringmark_ring::{Mapping, lock};

use crate::error::ReaderError;
use crate::session::Session;

/// How often the answer is looked for. The helper thread answers within a fraction of this.
const LOOK_EVERY: Duration = Duration::from_micros(200);

/// Sends one request and waits for its answer, at most `limit`. The session must be open with
/// [`crate::Access::Control`].
///
/// # Errors
/// [`ReaderError::Control`]: control is off, the process is gone, another controller is at work,
/// or nobody answered in time. An answer that says "no" is an answer.
pub fn request(session: &Session, text: &str, limit: Duration) -> Result<Answer, ReaderError> {
    let offset = session.header().mailbox_offset;
    if offset == 0 {
        return Err(refused(session, "its session has no control (control=off)"));
    }
    if session.ended() {
        return Err(refused(session, "it has ended or closed its session"));
    }
    let (map, within) = map_mailbox(session, offset)?;
    let mailbox = Mailbox::new(&map, within)
        .ok_or_else(|| refused(session, "its mailbox lies outside the ring file"))?;
    let exchange = Exchange {
        session,
        mailbox,
        end: Instant::now() + limit,
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
    end: Instant,
    limit: Duration,
}

impl Exchange<'_> {
    fn take_lock(&self, offset: u64) -> Result<(), ReaderError> {
        self.until("another controller holds its mailbox", || {
            lock::hold_exclusive(self.session.ring().file(), offset).ok()
        })
    }

    fn run(&self, text: &str) -> Result<Answer, ReaderError> {
        let number = self.until("an earlier request is still unanswered", || {
            self.mailbox.request(text)
        })?;
        self.mailbox.wake();
        self.until("no answer; is it stopped?", || {
            (self.mailbox.answered() == number).then_some(())
        })?;
        Ok(self.mailbox.read_answer())
    }

    /// Looks until there is something, the process ends, or the time is over.
    fn until<T>(&self, what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, ReaderError> {
        loop {
            if let Some(found) = look() {
                return Ok(found);
            }
            if self.session.ended() {
                return Err(refused(self.session, "it ended before it answered"));
            }
            if Instant::now() >= self.end {
                let reason = format!("{what} (waited {:?})", self.limit);
                return Err(refused(self.session, &reason));
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }
}
