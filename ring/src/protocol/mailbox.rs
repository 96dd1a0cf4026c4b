//! The control mailbox: a controller asks, the producer's helper thread answers.
//!
//! One request at a time, as text, with one answer. Controllers exclude each other by a file lock;
//! the producer has one helper thread. A request and its answer carry the same number.
//!
//! ```text
//!  controller                                helper thread of the producer
//!  writes text, request_seq := n  [M1] ───▶  sees n  [M2], waits on the word as a futex
//!                                            decided: n, taken    (or passes over it)
//!  waits while progress changes              works, progress += 1 …
//!  sees answer_seq == n  [M2]          ◀───  writes text, answer_seq := n  [M1]
//! ```
//!
//! # A controller that gives up
//!
//! A controller that waits no longer takes its request back: it stores *withdrawn* for `n` in the
//! word `decided`, by the same compare-exchange with which the producer stores *taken*. Exactly
//! one of them wins. So a request that was taken back is never carried out later, and a controller
//! that comes too late learns that the work has begun.
//!
//! Both sides may be killed at any point. A controller that is gone leaves a request that the
//! helper answers to no reader; the next controller uses the next number. A producer that is gone
//! never answers: the controller watches the process.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::mailbox::{
    ANSWER_OFFSET, MAILBOX_BYTES, MailboxHeader, REQUEST_OFFSET, TEXT_BYTES_MAX,
};

use crate::protocol::order;
use crate::protocol::sync::AtomicU64;

const REQUEST_SEQ: usize = offset_of!(MailboxHeader, request_seq) / 8;
const ANSWER_SEQ: usize = offset_of!(MailboxHeader, answer_seq) / 8;
const SIZES: usize = offset_of!(MailboxHeader, request_bytes) / 8;
const STATUS: usize = offset_of!(MailboxHeader, answer_status) / 8;
const DECIDED: usize = offset_of!(MailboxHeader, decided) / 8;
const PROGRESS: usize = offset_of!(MailboxHeader, progress) / 8;

/// In `decided`: the producer has begun.
const TAKEN: u64 = 1;
/// In `decided`: its controller has taken the request back.
const WITHDRAWN: u64 = 2;

/// The mailbox region of a mapped ring file. Both sides use this type; the mapping must be
/// writable for all functions but those that only look.
#[derive(Clone, Copy)]
pub struct Mailbox<'m> {
    words: &'m [AtomicU64],
}

/// An answer to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// 0: done. Any other number: refused or failed, as `text` says.
    pub status: u32,
    /// What was done, or why not, for a person to read; at most [`TEXT_BYTES_MAX`] bytes.
    pub text: String,
}

/// What became of a request that its controller took back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Withdrawal {
    /// Nothing of it was done, nor will be.
    Done,
    /// The producer has begun.
    Begun,
}

impl<'m> Mailbox<'m> {
    /// The mailbox in these words; `None` if there are too few.
    #[must_use]
    pub fn over(words: &'m [AtomicU64]) -> Option<Self> {
        let words = words.get(..MAILBOX_BYTES / 8)?;
        Some(Self { words })
    }

    /// The word that the helper waits on: its low half is a futex, and changes with each request.
    #[must_use]
    pub fn futex_word(&self) -> &'m AtomicU64 {
        &self.words[REQUEST_SEQ]
    }

    /// Wakes the helper that waits on the futex. A wake-up that is lost delays the request until
    /// the helper looks on its own.
    #[cfg(not(loom))]
    pub fn wake(&self) {
        use rustix::thread::futex;
        // That no thread waits is fine; the other side looks again on its own.
        let _ = futex::wake(self.futex_half(), futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps until the helper has answered the request with this number, or for `at_most`. `false`: it
    /// did not sleep, because the answer has come, or because waiting here is not possible.
    #[cfg(not(loom))]
    #[must_use]
    pub fn wait_for_answer(&self, number: u64, at_most: core::time::Duration) -> bool {
        use rustix::thread::futex;
        let pause = futex::Timespec {
            tv_sec: at_most.as_secs().cast_signed(),
            tv_nsec: at_most.subsec_nanos().into(),
        };
        let half = self.futex_half();
        let waited = futex::wait(half, futex::Flags::empty(), number as u32, Some(&pause));
        !waited.is_err_and(|error| error != rustix::io::Errno::TIMEDOUT)
    }

    #[cfg(not(loom))]
    fn futex_half(&self) -> &'m core::sync::atomic::AtomicU32 {
        let word: *const AtomicU64 = self.futex_word();
        // SAFETY: the low half of a little-endian u64, aligned to 8, alive with the mapping.
        unsafe { &*word.cast::<core::sync::atomic::AtomicU32>() }
    }

    /// Number of the latest request; 0: none yet. After this load its text can be read (`[M2]`).
    #[must_use]
    pub fn requested(&self) -> u64 {
        self.words[REQUEST_SEQ].load(order::mail_acquire()) // [M2]
    }

    /// Number of the latest answer; equal to the request's when it is answered. After this load
    /// the answer can be read (`[M2]`).
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.words[ANSWER_SEQ].load(order::mail_acquire()) // [M2]
    }

    /// Writes a request and returns its number; `None` while the helper works on an earlier one.
    ///
    /// An earlier one that it has not begun is taken back: its controller is gone. The caller holds
    /// the controllers' lock. Text beyond [`TEXT_BYTES_MAX`] is cut at a character's end.
    #[must_use]
    pub fn request(&self, text: &str) -> Option<u64> {
        let number = self.requested();
        if number != self.answered() && self.withdraw(number) != Withdrawal::Done {
            return None;
        }
        let bytes = clip(text);
        self.write_text(REQUEST_OFFSET, bytes);
        self.set_size(0, bytes.len() as u32);
        let next = number.wrapping_add(1);
        self.words[REQUEST_SEQ].store(next, order::mail_release()); // [M1]
        Some(next)
    }

    /// Takes request `number` back, unless the producer has begun. The caller holds the
    /// controllers' lock.
    #[must_use]
    pub fn withdraw(&self, number: u64) -> Withdrawal {
        match self.decide(number, WITHDRAWN) {
            Some(WITHDRAWN) => Withdrawal::Done,
            _ => Withdrawal::Begun,
        }
    }

    /// Takes request `number` for the helper, which then carries it out and answers it. `false`:
    /// its controller has taken it back, and its text must not be read, because the next one may be
    /// on its way.
    #[must_use]
    pub fn take(&self, number: u64) -> bool {
        let is_taken = self.decide(number, TAKEN) == Some(TAKEN);
        self.work();
        is_taken
    }

    /// Decides what becomes of a request, unless that was decided before. Returns what was decided
    /// for it; `None`: a later request was decided, so this one had been taken back. The decision
    /// orders nothing by itself: the number of the next request, and that of the answer, publish
    /// the texts.
    fn decide(&self, number: u64, how: u64) -> Option<u64> {
        let decided = |found| is_earlier(found, number).then_some(decision(number, how));
        match self.words[DECIDED].fetch_update(Relaxed, Relaxed, decided) {
            Ok(_) => Some(how),
            Err(before) if decision(number, 0) == before & !KIND => Some(before & KIND),
            Err(_) => None,
        }
    }

    /// Shows that the producer works on a request: its controller waits on. Called now and then
    /// during long work.
    pub fn work(&self) {
        self.words[PROGRESS].fetch_add(1, Relaxed);
    }

    /// A number that changes as long as the producer works on a request; only its change means
    /// anything. A controller gives up when it stays the same for its time limit.
    #[must_use]
    pub fn progress(&self) -> u64 {
        self.words[PROGRESS].load(Relaxed)
    }

    /// Passes over request `number`, which its controller has taken back: the mailbox is free for
    /// the next one.
    pub fn pass_over(&self, number: u64) {
        self.words[ANSWER_SEQ].store(number, order::mail_release()); // [M1]
    }

    /// The request's text. Bytes that are no UTF-8 are replaced: another process may have written
    /// anything. Read by the helper after [`Mailbox::take`] returned `true`.
    #[must_use]
    pub fn request_text(&self) -> String {
        self.read_text(REQUEST_OFFSET, self.words[SIZES].load(Relaxed) as u32)
    }

    /// Answers request `number`. Text beyond [`TEXT_BYTES_MAX`] is cut at a character's end.
    pub fn answer(&self, number: u64, answer: &Answer) {
        let bytes = clip(&answer.text);
        self.write_text(ANSWER_OFFSET, bytes);
        self.set_size(1, bytes.len() as u32);
        self.words[STATUS].store(u64::from(answer.status), Relaxed);
        self.words[ANSWER_SEQ].store(number, order::mail_release()); // [M1]
    }

    /// The latest answer; read after [`Mailbox::answered`] returned the request's number.
    #[must_use]
    pub fn read_answer(&self) -> Answer {
        let bytes = (self.words[SIZES].load(Relaxed) >> 32) as u32;
        let status = self.words[STATUS].load(Relaxed) as u32;
        Answer {
            status,
            text: self.read_text(ANSWER_OFFSET, bytes),
        }
    }

    fn set_size(&self, half: u32, bytes: u32) {
        let mask = 0xFFFF_FFFF_u64 << (32 * half);
        let size = u64::from(bytes) << (32 * half);
        // The other side may be writing the other half: a request after one that timed out.
        let _ =
            self.words[SIZES].fetch_update(Relaxed, Relaxed, |sizes| Some(sizes & !mask | size));
    }

    fn write_text(&self, offset: usize, bytes: &[u8]) {
        for (i, piece) in bytes.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..piece.len()].copy_from_slice(piece);
            self.words[offset / 8 + i].store(u64::from_le_bytes(word), Relaxed);
        }
    }

    fn read_text(&self, offset: usize, bytes: u32) -> String {
        let bytes = (bytes as usize).min(TEXT_BYTES_MAX);
        let words = &self.words[offset / 8..offset / 8 + bytes.div_ceil(8)];
        let mut text: Vec<u8> = words
            .iter()
            .flat_map(|w| w.load(Relaxed).to_le_bytes())
            .collect();
        text.truncate(bytes);
        String::from_utf8_lossy(&text).into_owned()
    }
}

const KIND_BITS: u32 = 2;

const KIND: u64 = (1 << KIND_BITS) - 1;

const fn decision(number: u64, how: u64) -> u64 {
    number << KIND_BITS | how
}

/// Whether `found` decided a request before request `number`. Numbers start again at 0.
const fn is_earlier(found: u64, number: u64) -> bool {
    let ahead = decision(number, 0).wrapping_sub(found & !KIND);
    ahead != 0 && ahead <= u64::MAX / 2
}

fn clip(text: &str) -> &[u8] {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text.as_bytes()[..end]
}
