//! Calls that may wait for the disk. They run apart from the threads that serve connections, so a
//! disk that hangs stops only the connections that write to it.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::mutex::{lock, try_lock};

/// The calls under way.
#[derive(Debug, Default)]
pub(crate) struct DiskCalls {
    next: AtomicU64,
    /// When each began, by its number.
    begun: Mutex<BTreeMap<u64, Instant>>,
}

impl DiskCalls {
    /// Makes a call on this thread, whose other connections go on on another one. A runtime with
    /// one thread has no other: there they wait.
    pub(crate) fn off_the_workers<R>(&self, call: impl FnOnce() -> R) -> R {
        let is_alone = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        match is_alone {
            true => self.count(call),
            false => tokio::task::block_in_place(|| self.count(call)),
        }
    }

    /// Asks what a mutex guards: here if it is free, else apart, because the thread that has it may
    /// wait for the disk.
    pub(crate) fn asked<T, R>(&self, of: &Mutex<T>, ask: impl FnOnce(&T) -> R) -> R {
        match try_lock(of) {
            Some(found) => ask(&found),
            None => self.off_the_workers(|| ask(&lock(of))),
        }
    }

    /// Makes a call that counts as under way until it returns.
    pub(crate) fn count<R>(&self, call: impl FnOnce() -> R) -> R {
        let number = self.next.fetch_add(1, Relaxed);
        let _ = lock(&self.begun).insert(number, Instant::now());
        let _ended = Ended {
            calls: self,
            number,
        };
        call()
    }

    /// For how long the oldest call has been under way; 0 without one.
    pub(crate) fn longest(&self) -> Duration {
        let begun = lock(&self.begun).first_key_value().map(|(_, at)| *at);
        begun.map_or(Duration::ZERO, |at| at.elapsed())
    }
}

/// Takes a call off the list, also when it panics.
struct Ended<'c> {
    calls: &'c DiskCalls,
    number: u64,
}

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        lock(&self.calls.begun).remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use super::*;

    #[test]
    fn the_oldest_call_counts_until_it_ends() {
        let calls = DiskCalls::default();
        assert_eq!(calls.longest(), Duration::ZERO);
        thread::scope(|scope| {
            let (end, ends) = mpsc::channel::<()>();
            let hanging = scope.spawn(|| calls.count(move || ends.recv().is_err()));
            while calls.longest() < Duration::from_millis(20) {
                thread::yield_now();
            }
            calls.count(|| assert!(calls.longest() >= Duration::from_millis(20)));
            drop(end);
            assert!(hanging.join().unwrap());
        });
        assert_eq!(calls.longest(), Duration::ZERO);
        let broken =
            thread::scope(|scope| scope.spawn(|| calls.count(|| panic!("on purpose"))).join());
        assert!(broken.is_err());
        assert_eq!(calls.longest(), Duration::ZERO);
    }
}
