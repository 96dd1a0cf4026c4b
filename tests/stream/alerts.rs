//! Promise: figures are named as Prometheus' conventions say, and the alert rules that are shipped fire when something is wrong,
//! and in normal life not. Prometheus' own tool says so, where it can be had.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::process::Command;

use ringmark_collector::Figures;
use ringmark_reader::stream::StreamFigures;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::tools::log_skip;
use ringmark_tests::{Running, workspace_root};

/// All figures of both sides.
pub(crate) fn served() -> String {
    let streamer = StreamFigures {
        certificate_until: Some(0),
        certificate_renewal: Some(0),
        ..StreamFigures::default()
    };
    Figures::default().text() + &streamer.text()
}

/// What lines that begin so say of each figure.
fn said<'t>(text: &'t str, begin: &str) -> Vec<(&'t str, &'t str)> {
    let lines = text.lines().filter_map(|line| line.strip_prefix(begin));
    lines.filter_map(|line| line.split_once(' ')).collect()
}

/// Other units than s and bytes, as names have them.
const NOT_BASE_UNITS: [&str; 16] = [
    "ns",
    "us",
    "ms",
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "minutes",
    "hours",
    "days",
    "kib",
    "mib",
    "gib",
    "kilobytes",
    "megabytes",
    "percent",
    "bits",
];

#[test]
fn figures_are_named_by_the_conventions() {
    let text = served();
    let (kinds, helps) = (said(&text, "# TYPE "), said(&text, "# HELP "));
    let names: BTreeSet<&str> = kinds.iter().map(|(name, _)| *name).collect();
    assert_eq!(names.len(), kinds.len(), "one name for each");
    let helped: BTreeMap<_, _> = helps.iter().copied().collect();
    assert_eq!(helped.len(), names.len());
    assert!(names.len() > 50, "{names:?}");
    for (name, kind) in &kinds {
        let help = helped.get(name).copied().unwrap_or_default();
        assert!(help.ends_with('.') && help.len() > 10, "{name}: {help}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(name.chars().all(is_plain) && !name.contains("__"), "{name}");
        let family = name.strip_suffix("_total").unwrap_or(name);
        assert_eq!(*kind == "counter", family != *name, "{name} is a {kind}");
        // OpenMetrics names a counter without its ending.
        assert!(
            family == *name || !names.contains(family),
            "{name} and {family}"
        );
        for ending in ["_count", "_sum", "_bucket", "_info_total", "_created"] {
            assert!(!name.ends_with(ending), "{name}: {ending} is of histograms");
        }
        let words: Vec<&str> = family.split('_').collect();
        let other = words.iter().find(|word| NOT_BASE_UNITS.contains(word));
        assert_eq!(other, None, "{name}: expected seconds or bytes");
        for unit in ["seconds", "bytes"] {
            let is_last = words.last() == Some(&unit);
            assert!(
                is_last || !words.contains(&unit),
                "{name}: the unit is last"
            );
        }
        if *kind == "histogram" {
            assert!(name.ends_with("_duration_seconds"), "{name}");
        }
    }
    // No fact has two names: they differ in more than the order of their words.
    let words = |name: &str| -> Vec<String> {
        let mut words: Vec<_> = name.split('_').map(str::to_owned).collect();
        words.sort();
        words
    };
    let unordered: BTreeSet<_> = names.iter().map(|name| words(name)).collect();
    assert_eq!(unordered.len(), names.len());
}

/// What Prometheus' tool says of a file as its input; `None`: it is not here.
fn promtool(fixture: &Fixture, words: &[&str], input: &str) -> Option<(bool, String)> {
    let mut command = Command::new("promtool");
    command.args(words).current_dir(fixture.path("."));
    let input = File::open(fixture.path(input)).expect("the input");
    match Running::start(command.stdin(input)) {
        Ok(running) => {
            let done = running.finish(SOON);
            let said = done.stdout_text() + &done.stderr_text();
            Some((done.status.success(), said))
        }
        Err(error) => {
            log_skip(&format!("figures and alert rules: promtool: {error}"));
            None
        }
    }
}

#[test]
fn promtool_finds_no_fault_in_figures_and_rules() {
    let fixture = Fixture::new("promtool");
    let rules = workspace_root().join("examples/deploy/prometheus-alerts.yaml");
    fs::copy(rules, fixture.path("prometheus-alerts.yaml")).expect("the rules");
    let days = workspace_root().join("tests/stream/alerts/days.yaml");
    fs::copy(days, fixture.path("days.yaml")).expect("the days");
    fs::write(fixture.path("figures"), served()).expect("the figures");
    for words in [
        &["check", "metrics"][..],
        &["check", "rules", "prometheus-alerts.yaml"],
        &["test", "rules", "days.yaml"],
    ] {
        let Some((is_fine, said)) = promtool(&fixture, words, "figures") else {
            return;
        };
        assert!(is_fine, "{words:?}: {said}");
    }
    // Its test of rules finds what is wrong.
    let rules = fs::read_to_string(fixture.path("prometheus-alerts.yaml")).expect("the rules");
    let wrong = rules.replace(
        "seen_timestamp_seconds) < 86400",
        "seen_timestamp_seconds) < 864000",
    );
    assert_ne!(wrong, rules);
    fs::write(fixture.path("prometheus-alerts.yaml"), wrong).expect("the rules");
    let found = promtool(&fixture, &["test", "rules", "days.yaml"], "figures");
    assert!(found.is_some_and(|(is_fine, _)| !is_fine));
}
