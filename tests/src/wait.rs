//! Waiting for something to become true, with an end.

use std::thread;
use std::time::{Duration, Instant};

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

/// The shortest of some measurements, made again until one is below `bar`, at most ten times. How
/// busy the machine is makes each longer, never shorter.
pub fn shortest(bar: Duration, mut measure: impl FnMut() -> Duration) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..10 {
        best = best.min(measure());
        if best < bar {
            break;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_what_the_probe_found() {
        let mut left = 3;
        let found = wait_until(Duration::from_secs(5), "countdown", || {
            left -= 1;
            (left == 0).then_some("done")
        });
        assert_eq!(found, "done");
    }

    #[test]
    fn the_shortest_is_below_the_bar_or_of_ten() {
        let bar = Duration::from_secs(5);
        let mut all = [9, 8, 4, 3].map(Duration::from_secs).into_iter();
        assert_eq!(shortest(bar, || all.next().unwrap()).as_secs(), 4);
        let mut all = (6..16).rev().map(Duration::from_secs);
        assert_eq!(shortest(bar, || all.next().unwrap()).as_secs(), 6);
    }

    #[test]
    #[should_panic(expected = "a pig flies")]
    fn gives_up() {
        wait_until(Duration::from_millis(10), "a pig flies", || None::<()>);
    }
}
