//! The processor's clock, which times events.

use ringmark_ring::clock;

use super::finding::Finding;

/// Whether the processor's counter can be used.
pub(super) fn finding() -> Finding {
    judged(&clock::source(), clock::tsc_is_invariant())
}

fn judged(source: &str, is_invariant: bool) -> Finding {
    const ABOUT: &str = "clock";
    let source = match source {
        "" => "none stated",
        source => source,
    };
    if is_invariant {
        return Finding::works(
            ABOUT,
            format!("the processor's counter, invariant (clock source {source})"),
        );
    }
    let found =
        format!("monotonic: the processor's counter is not reliable here (clock source {source})");
    let advice = "events cost a system clock's time more; 'dmesg | grep -i clocksource' says why the kernel gave it up";
    Finding::limited(ABOUT, found, advice)
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::judged;

    #[test]
    fn another_clock_is_named() {
        assert_eq!(judged("tsc", true).verdict, Verdict::Works);
        let other = judged("hpet", false);
        assert_eq!(other.verdict, Verdict::Limited);
        assert!(other.found.contains("clock source hpet"));
    }
}
