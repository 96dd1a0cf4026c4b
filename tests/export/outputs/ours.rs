//! What our own outputs show.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use ringmark_tests::fixture::Fixture;
use serde_json::Value;

use super::{Places, Row, Rows, Shown, lines, place, say};

fn is_ended(line: &Value) -> bool {
    line["kind"] == "span" || line["kind"] == "call"
}

fn name(line: &Value) -> String {
    line["name"].as_str().expect("a name").to_owned()
}

fn number(line: &Value, key: &str) -> u64 {
    line[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key} in {line}"))
}

/// `report --json`: the table. A time that is not known is 0.
pub(crate) fn report(fixture: &Fixture, trace: &Path) -> Rows {
    let mut rows = Rows::new();
    let text = say(fixture, "report --json", trace);
    for line in lines(&text).filter(|line| line["of"] == "span" || line["of"] == "function") {
        let row = Row {
            count: number(&line, "count"),
            total_ns: line["total_ns"].as_u64().unwrap_or(0),
            own_ns: line["self_ns"].as_u64().unwrap_or(0),
        };
        assert_eq!(rows.insert(name(&line), row), None, "two rows: {line}");
    }
    rows
}

/// `report --paths`: a tree by indentation.
pub(crate) fn paths(fixture: &Fixture, trace: &Path) -> Shown {
    let text = say(fixture, "report --paths --wide", trace);
    let mut lines = text.lines().skip_while(|line| !line.starts_with("COUNT"));
    let column = lines.next().and_then(|heads| heads.find("NAME"));
    let column = column.expect("a table");
    let (mut places, mut around) = (Places::new(), Vec::<String>::new());
    for line in lines {
        let tree = &line[column..];
        let depth = (tree.len() - tree.trim_start().len()) / 2;
        let name = tree.split_whitespace().next().expect("a name").to_owned();
        let count = line.split_whitespace().next().expect("a count");
        let count = count.replace(',', "").parse().expect("a count");
        around.truncate(depth);
        place(&mut places, &name, around.last().map_or("", |n| n), count);
        around.push(name);
    }
    Shown {
        places: Some(places),
        ..Shown::default()
    }
}

/// `cat --json`: spans, by their ids.
pub(crate) fn cat(fixture: &Fixture, trace: &Path) -> Shown {
    let text = say(fixture, "cat --json", trace);
    let all: Vec<Value> = lines(&text).filter(is_ended).collect();
    let id = |line: &Value, key: &str| line[key].as_str().map(str::to_owned);
    let by_id: HashMap<_, _> = all.iter().map(|l| (id(l, "span"), name(l))).collect();
    let (mut counts, mut totals) = (BTreeMap::new(), BTreeMap::new());
    let mut places = Places::new();
    for line in &all {
        let name = name(line);
        let parent = id(line, "parent").and_then(|parent| by_id.get(&Some(parent)).cloned());
        let parent = parent.unwrap_or_default();
        *counts.entry(name.clone()).or_default() += 1;
        if parent != name {
            *totals.entry(name.clone()).or_default() += line["dur_ns"].as_u64().unwrap_or(0);
        }
        place(&mut places, &name, &parent, 1);
    }
    Shown {
        counts: Some(counts),
        totals: Some(totals),
        places: Some(places),
        ..Shown::default()
    }
}

/// `cat --tree`: spans, by indentation. A line is TIME THREAD[TID]  INDENTED LEVEL TARGET: NAME {span ...}.
pub(crate) fn tree(fixture: &Fixture, trace: &Path) -> Shown {
    let text = say(fixture, "cat --tree", trace);
    let (mut places, mut around) = (Places::new(), Vec::<String>::new());
    for line in text.lines().filter(|line| line.contains(" {span ")) {
        let (_, rest) = line.split_once("] ").expect("a thread");
        let depth = (rest.len() - rest.trim_start().len()) / 2;
        let (_, rest) = rest.split_once(": ").expect("a target");
        let name = rest.split(" {").next().expect("a name").to_owned();
        around.truncate(depth);
        place(&mut places, &name, around.last().map_or("", |n| n), 1);
        around.push(name);
    }
    Shown {
        places: Some(places),
        ..Shown::default()
    }
}

/// `graph --json`: calls, where they end; what is around one ends later, with a smaller depth.
pub(crate) fn graph(fixture: &Fixture, trace: &Path) -> Shown {
    let text = say(fixture, "graph --json", trace);
    let mut rows = Rows::new();
    let mut places = Places::new();
    let mut waiting: HashMap<(u64, u64), Vec<String>> = HashMap::new();
    for line in lines(&text).filter(is_ended) {
        let (name, depth, tid) = (name(&line), number(&line, "depth"), number(&line, "tid"));
        let row = rows.entry(name.clone()).or_default();
        row.count += 1;
        row.own_ns += number(&line, "self_ns");
        for inner in waiting.remove(&(tid, depth + 1)).unwrap_or_default() {
            place(&mut places, &inner, &name, 1);
        }
        waiting.entry((tid, depth)).or_default().push(name);
    }
    for name in waiting.into_values().flatten() {
        place(&mut places, &name, "", 1);
    }
    let shown = Shown::of(&rows);
    Shown {
        counts: shown.counts,
        owns: shown.owns,
        places: Some(places),
        ..Shown::default()
    }
}

/// Folded stacks: own times, by the last name of each.
pub(crate) fn folded(fixture: &Fixture, trace: &Path) -> Shown {
    let text = say(fixture, "export --format folded -o -", trace);
    let mut owns = BTreeMap::new();
    for line in text.lines() {
        let (stack, ns) = line.rsplit_once(' ').expect("a number");
        let name = stack.rsplit(';').next().expect("a name");
        *owns.entry(name.to_owned()).or_default() += ns.parse::<u64>().expect("ns");
    }
    Shown {
        owns: Some(owns),
        ..Shown::default()
    }
}

/// The table: rows of spans and calls. Their names and times are before all texts that are quoted.
pub(crate) fn csv(fixture: &Fixture, trace: &Path) -> Shown {
    let text = say(fixture, "export --format csv -o -", trace);
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let cells: Vec<_> = line.split(',').collect();
        if matches!(cells[2], "span" | "call") {
            *counts.entry(cells[3].to_owned()).or_default() += 1;
        }
    }
    Shown {
        counts: Some(counts),
        ..Shown::default()
    }
}

/// Rows of the table that are neither spans nor calls, and how many events are lost before all rows.
pub(crate) fn events_in_csv(fixture: &Fixture, trace: &Path) -> [u64; 2] {
    let text = say(fixture, "export --format csv -o -", trace);
    let [mut events, mut lost] = [0; 2];
    for line in text.lines().skip(1) {
        let cells: Vec<_> = line.split(',').collect();
        events += u64::from(!matches!(cells[2], "span" | "call"));
        lost += cells[16].parse::<u64>().expect("a count");
    }
    [events, lost]
}

/// Events that `cat --json` shows, and those of which it says that they are not here.
pub(crate) fn events_in_cat(fixture: &Fixture, trace: &Path) -> [u64; 2] {
    let text = say(fixture, "cat --json", trace);
    let [mut events, mut lost] = [0; 2];
    for line in lines(&text) {
        match line["kind"].as_str().expect("a kind") {
            "lost" => lost += number(&line, "count"),
            "event" | "counter" | "flow" => events += 1,
            _ => {}
        }
    }
    [events, lost]
}

/// Events that `report` counts, and those that `verify` counts as not here.
pub(crate) fn events_in_report(fixture: &Fixture, trace: &Path) -> [u64; 2] {
    let text = say(fixture, "report --json", trace);
    let events = lines(&text)
        .filter(|line| matches!(line["of"].as_str(), Some("event" | "counter" | "flow")));
    let events = events.map(|line| number(&line, "count")).sum();
    let text = say(fixture, "verify --json", trace);
    let found = lines(&text).next().expect("a line");
    let lost = ["lost", "overwritten", "missing"].map(|key| number(&found, key));
    [events, lost.iter().sum()]
}
