//! What a run came to.

use super::SECOND;

/// Width of a class of lags, and their number.
const LAG_CLASS: u64 = SECOND / 100;
const LAG_CLASSES: usize = 1 << 18;

/// Numbers of events by the second, and what became of pages.
#[derive(Debug)]
pub(super) struct Figures {
    /// Attempts to connect, each second.
    pub(super) attempts: Vec<u64>,
    /// Handshakes that a collector did, each second.
    pub(super) handshakes: Vec<u64>,
    /// Handshakes for hosts that had gone.
    pub(super) in_vain: u64,
    /// Connections closed for others, and those refused for now.
    pub(super) evicted: u64,
    pub(super) refused: u64,
    /// Connections lost after their host was welcomed.
    pub(super) cut: u64,
    pub(super) puts: u64,
    pub(super) put_bytes: u64,
    pub(super) failed_puts: u64,
    pub(super) stored: u64,
    /// Pages that were stored again.
    pub(super) twice: u64,
    /// Most bytes that waited in a collector, and most memory taken, credit included.
    pub(super) most_waiting: u64,
    pub(super) most_taken: u64,
    /// Backlog of each host in bytes when what was away is back.
    pub(super) backlogs: Vec<u64>,
    /// Seconds after that at which the backlog of each host is stored.
    pub(super) drained: Vec<f64>,
    /// And those at which nothing waits to be sent any more.
    pub(super) caught_up: Vec<f64>,
    lags: Vec<u32>,
    /// What was put, and lags, in the second half of the time before something is away.
    pub(super) steady: Steady,
    /// Most bytes that waited in a collector when it is back.
    pub(super) waiting_at_return: u64,
}

/// What happened in a part of the time.
#[derive(Debug, Default)]
pub(super) struct Steady {
    pub(super) puts: u64,
    pub(super) pages: u64,
    /// Lags of pages, in seconds.
    pub(super) lags: Vec<f64>,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            attempts: Vec::new(),
            handshakes: Vec::new(),
            in_vain: 0,
            evicted: 0,
            refused: 0,
            cut: 0,
            puts: 0,
            put_bytes: 0,
            failed_puts: 0,
            stored: 0,
            twice: 0,
            most_waiting: 0,
            most_taken: 0,
            backlogs: Vec::new(),
            drained: Vec::new(),
            caught_up: Vec::new(),
            lags: vec![0; LAG_CLASSES],
            steady: Steady::default(),
            waiting_at_return: 0,
        }
    }
}

impl Figures {
    /// Notes after which time a page was acknowledged.
    pub(super) fn lag(&mut self, time: u64) {
        let class = (time / LAG_CLASS) as usize;
        self.lags[class.min(LAG_CLASSES - 1)] += 1;
    }

    /// The lag that this part of all pages does not exceed, in seconds.
    pub(super) fn lag_at(&self, part: f64) -> f64 {
        let all: u64 = self.lags.iter().map(|&count| u64::from(count)).sum();
        let mut left = (all as f64 * part).ceil() as u64;
        for (class, &count) in self.lags.iter().enumerate() {
            if u64::from(count) >= left {
                return (class as f64 + 0.5) * LAG_CLASS as f64 / SECOND as f64;
            }
            left -= u64::from(count);
        }
        f64::INFINITY
    }

    /// The most, and the 99th percentile, of what happened each second from this one on, for as long as anything did.
    pub(super) fn peak(by_second: &[u64], from: u64) -> (u64, u64) {
        let after = by_second.get(from as usize..).unwrap_or_default();
        let last = after.iter().rposition(|&count| count > 0);
        let after = &after[..last.map_or(0, |last| last + 1)];
        let mut sorted = after.to_vec();
        sorted.sort_unstable();
        let most = sorted.last().copied().unwrap_or_default();
        (
            most,
            sorted.get(sorted.len() * 99 / 100).copied().unwrap_or(most),
        )
    }

    pub(super) fn count(by_second: &mut Vec<u64>, now: u64, count: u64) {
        let second = (now / SECOND) as usize;
        if by_second.len() <= second {
            by_second.resize(second + 1, 0);
        }
        by_second[second] += count;
    }
}

/// The number that this part of them does not exceed.
pub(super) fn at<T: Copy + PartialOrd>(numbers: &[T], part: f64) -> T {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("numbers"));
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}
