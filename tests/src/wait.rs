//! Waiting for something to become true, with an end; and how late this machine lets a wait end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Polls `probe` every 2 ms until it returns `Some`, at most `timeout`.
///
/// # Panics
/// When the time is over; `what` says what never happened.
pub fn wait_until<T>(timeout: Duration, what: &str, mut probe: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + timeout;
    loop {
        if let Some(found) = probe() {
            return found;
        }
        assert!(Instant::now() < end, "not within {timeout:?}: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Time of a processor that this thread has taken. Other programs make it somewhat longer, not by their number.
#[must_use]
pub fn thread_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec as u32)
}

/// A control of tests that are about delays: a thread that sleeps for a millisecond again and again, and notes how late
/// it is woken. What a busy machine adds to a delay under test it adds to this one, too.
#[derive(Debug)]
pub struct Lateness {
    over: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Duration>>,
}

impl Lateness {
    /// Begins to measure.
    #[must_use]
    pub fn watch() -> Self {
        const NAP: Duration = Duration::from_millis(1);
        let over = Arc::new(AtomicBool::new(false));
        let is_over = over.clone();
        let thread = thread::spawn(move || {
            let mut late = Vec::new();
            while !is_over.load(Relaxed) || late.is_empty() {
                let begun = Instant::now();
                thread::sleep(NAP);
                late.push(begun.elapsed().saturating_sub(NAP));
            }
            late
        });
        Self { over, thread }
    }

    /// The 99th percentile and the longest so far.
    ///
    /// # Panics
    /// When the thread is gone.
    #[must_use]
    pub fn end(self) -> [Duration; 2] {
        self.over.store(true, Relaxed);
        let mut late = self.thread.join().expect("a thread that sleeps");
        late.sort_unstable();
        [late[late.len() * 99 / 100], late[late.len() - 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_what_the_probe_found() {
        let mut left = 3;
        let found = wait_until(Duration::from_secs(60), "countdown", || {
            left -= 1;
            (left == 0).then_some("done")
        });
        assert_eq!(found, "done");
    }

    #[test]
    #[should_panic(expected = "a pig flies")]
    fn gives_up() {
        wait_until(Duration::from_millis(10), "a pig flies", || None::<()>);
    }

    #[test]
    fn a_thread_that_sleeps_takes_no_time_and_one_that_works_does() {
        let before = thread_time();
        while thread_time() < before + Duration::from_millis(2) {}
        let [most_are, longest] = Lateness::watch().end();
        assert!(most_are <= longest);
    }
}
