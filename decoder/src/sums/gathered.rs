//! What profile tracers have gathered: the events that say so, and what is read off a histogram.

use ringmark_format::tracer_text;

use crate::events::event::Event;
use crate::trace_file::value::Value;

/// What a tracer has gathered of a function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gathered(pub tracer_text::Gathered<'static>);

impl Gathered {
    /// Whether events of this name and target say what was gathered.
    #[must_use]
    pub fn is_told_by(name: &[u8], target: &[u8]) -> bool {
        let event = tracer_text::Gathered::EVENT;
        let of_ours = tracer_text::Gathered::EVENT_TARGET;
        (name, target) == (event.as_bytes(), of_ours.as_bytes())
    }

    /// Of an event, with the name of its tracer.
    #[must_use]
    pub fn of_event(event: &Event<'_>) -> Option<(String, Self)> {
        if !Self::is_told_by(event.name(), event.target()) {
            return None;
        }
        let mut gathered = tracer_text::Gathered::default();
        let mut tracer = None;
        for (field, value) in event.args() {
            let name = field.name.as_slice();
            let _ = match value {
                Value::Str(text) if name == tracer_text::Gathered::EVENT_TRACER.as_bytes() => {
                    tracer = Some(lossy(text));
                    true
                }
                Value::Str(text) => gathered.set_text(name, &lossy(text)),
                Value::U64(number) => gathered.set_number(name, number),
                _ => false,
            };
        }
        Some((tracer?, Self(gathered)))
    }

    /// Calls whose duration is known.
    #[must_use]
    pub fn timed(&self) -> u64 {
        let calls = self.0.histogram.0.iter().map(|(_, calls)| *calls);
        calls.fold(0, u64::saturating_add)
    }

    /// Calls so far, and those of them without a known end: still open, on another stack or too deep.
    #[must_use]
    pub fn calls(&self) -> (u64, u64) {
        let calls = self.0.calls.saturating_add(self.0.open);
        (calls, calls.saturating_sub(self.timed()))
    }

    /// Total, own, mean, median, 99th percentile and longest, in ns, where any is known.
    #[must_use]
    pub fn times(&self) -> Option<[u64; 6]> {
        (self.timed() > 0).then(|| {
            [
                self.0.total,
                self.0.own,
                self.mean(),
                self.percentile(50),
                self.percentile(99),
                self.0.max,
            ]
        })
    }

    /// Mean duration, ns.
    #[must_use]
    pub fn mean(&self) -> u64 {
        self.0.sum.checked_div(self.timed()).unwrap_or(0)
    }

    /// About what `percent` of the calls do not exceed: calls are taken to be spread evenly over
    /// their bucket.
    #[must_use]
    pub fn percentile(&self, percent: u32) -> u64 {
        let rank = (u128::from(self.timed()) * u128::from(percent)).div_ceil(100);
        let mut rank = u64::try_from(rank).unwrap_or(u64::MAX);
        for (low, calls) in &self.0.histogram.0 {
            if rank <= *calls {
                let part = u128::from(*low) * u128::from(rank) / u128::from((*calls).max(1));
                let ns = u64::try_from(part).unwrap_or(u64::MAX).saturating_add(*low);
                return ns.clamp(self.0.min.min(self.0.max), self.0.max);
            }
            rank -= calls;
        }
        self.0.max
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_off_a_histogram() {
        let line = "10 1 2 5000 4000 6000 100 3000 96:4,192:5,3072:1\tf(int, char)\tprogram";
        let of = |line| Gathered(tracer_text::Gathered::parse(line).unwrap().into_owned());
        let found = of(line);
        assert_eq!((found.calls(), found.mean()), ((11, 1), 600));
        assert_eq!(found.percentile(50), 192 + 192 / 5);
        assert_eq!(found.percentile(99), 3000, "not beyond the longest");
        assert_eq!(found.percentile(1), 120);
        let never = of("0 1 0 0 0 0 0 0 -\tmain\tm");
        assert_eq!((never.mean(), never.percentile(50)), (0, 0));
    }
}
