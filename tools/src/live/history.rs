//! The last values of a figure, and a line that shows them.

use std::collections::VecDeque;

/// Values that are kept.
const KEPT: usize = 120;
/// Heights of a value, from nearly nothing to the highest.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The last values, the latest one last.
#[derive(Debug, Clone, Default)]
pub(crate) struct History(VecDeque<f64>);

impl History {
    /// Adds the latest value.
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push_back(value);
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// Whether none of them is more than 0.
    pub(crate) fn is_flat(&self) -> bool {
        self.0.iter().all(|value| *value <= 0.0)
    }

    /// The highest of the last `columns` values.
    pub(crate) fn highest(&self, columns: usize) -> f64 {
        self.last(columns).fold(0.0, f64::max)
    }

    fn last(&self, columns: usize) -> impl Iterator<Item = f64> {
        let from = self.0.len().saturating_sub(columns);
        self.0.iter().skip(from).copied()
    }

    /// The last values as bars, one column each, the latest one at the right; a space is 0.
    pub(crate) fn bars(&self, columns: usize) -> String {
        let highest = self.highest(columns);
        let bar = |value: f64| match value {
            value if value <= 0.0 || highest <= 0.0 => ' ',
            value => {
                let height = (value / highest * BARS.len() as f64).ceil() as usize;
                BARS[height.clamp(1, BARS.len()) - 1]
            }
        };
        let missing = columns.saturating_sub(self.0.len());
        let bars = self.last(columns).map(bar);
        std::iter::repeat_n(' ', missing).chain(bars).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_high_as_their_values() {
        let mut history = History::default();
        assert_eq!(history.bars(3), "   ");
        for value in [0.0, 1.0, 4.0, 8.0] {
            history.push(value);
        }
        assert_eq!(history.bars(6), "   ▁▄█");
        assert_eq!(history.bars(2), "▄█");
        history.push(1e9);
        assert_eq!(history.bars(3), "▁▁█", "what is not 0 is seen");
        assert!(!history.is_flat());
        (0..KEPT).for_each(|_| history.push(0.0));
        assert!(history.is_flat());
        assert_eq!(history.bars(4), "    ");
    }
}
