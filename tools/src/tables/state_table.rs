//! The table of what threads did while spans and calls lasted, where their switches were recorded.

use ringmark_decoder::{Figures, ThreadTimes};

use super::span_table::SpanRow;
use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Table, printable};

/// The rows as a table; `None`: no switches were recorded.
pub(crate) fn table(rows: &[SpanRow], figures: &Figures<'_>) -> Option<Table> {
    let lost = figures.switches_lost?;
    let timed = || rows.iter().filter(|row| row.is_timed());
    let has_unknown = timed().any(|row| row.unknown_times > 0);
    let headings = [
        ">RUNNING",
        ">READY",
        ">WAITING",
        ">WAITS",
        ">PREEMPTED",
        ">UNKNOWN",
        "NAME",
        "TARGET",
    ];
    let headings = headings
        .into_iter()
        .filter(|name| has_unknown || *name != ">UNKNOWN");
    let mut table = Table::new(&headings.collect::<Vec<_>>());
    for row in timed() {
        let mut cells = cells(row.did).to_vec();
        cells.extend(has_unknown.then(|| count(row.unknown_times)));
        cells.extend([printable(&row.name), printable(&row.target)]);
        table.row(cells);
    }
    if table.is_empty() {
        return None;
    }
    if has_unknown {
        let unknown = timed().map(|row| row.unknown_times).sum();
        let those = counted(unknown, "span");
        table.foot([format!(
            "these times are without {those} or calls of which not all switches are here"
        )]);
    }
    if lost > 0 {
        let lost = count(lost);
        table.foot([format!(
            "{lost} switches had no room when they were recorded"
        )]);
    }
    Some(table)
}

fn cells(did: Option<ThreadTimes>) -> [String; 5] {
    let Some(did) = did else {
        return [const { "-" }; 5].map(str::to_owned);
    };
    let [running, ready, waiting] = [did.running_ns, did.ready_ns, did.waiting_ns].map(duration);
    [
        running,
        ready,
        waiting,
        count(did.waits),
        count(did.preemptions),
    ]
}

/// What a thread did, in words, the longest part first: `waiting 20.1 ms in 1 wait, running 209 us`.
pub(crate) fn in_words(did: ThreadTimes) -> String {
    let mut parts = [
        (did.running_ns, "running", String::new()),
        (did.ready_ns, "ready", ready_words(did)),
        (
            did.waiting_ns,
            "waiting",
            format!(" in {}", counted(did.waits, "wait")),
        ),
    ];
    parts.sort_by_key(|(ns, ..)| std::cmp::Reverse(*ns));
    let parts = parts.iter().filter(|(ns, ..)| *ns > 0);
    let parts = parts.map(|(ns, what, more)| format!("{what} {}{more}", duration(*ns)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Why a thread was ready and did not run.
fn ready_words(did: ThreadTimes) -> String {
    let preempted = counted(did.preemptions, "time");
    match did.throttled_ns {
        0 => format!(" (preempted {preempted})"),
        ns => format!(
            " (preempted {preempted}; {} of it by the limit of its control group)",
            duration(ns)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_part_comes_first() {
        let did = ThreadTimes {
            running_ns: 2_000_000,
            ready_ns: 1_000,
            waiting_ns: 20_000_000,
            waits: 2,
            preemptions: 1,
            throttled_ns: 0,
        };
        assert_eq!(
            in_words(did),
            "waiting 20.0 ms in 2 waits, running 2.00 ms, ready 1.00 us (preempted 1 time)"
        );
        let throttled = ThreadTimes {
            ready_ns: 60_000_000,
            throttled_ns: 58_000_000,
            preemptions: 2,
            ..ThreadTimes::default()
        };
        assert_eq!(
            in_words(throttled),
            "ready 60.0 ms (preempted 2 times; 58.0 ms of it by the limit of its control group)"
        );
        let ran = ThreadTimes {
            running_ns: 5,
            ..ThreadTimes::default()
        };
        assert_eq!(in_words(ran), "running 5 ns");
    }
}
