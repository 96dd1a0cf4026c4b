//! What others show: babeltrace2, the trace processor, a browser, DuckDB, inferno.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::browser::shown;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::tool;
use ringmark_tests::tools::does;
use ringmark_tests::trace_processor::ask;
use ringmark_tests::{Finished, run};
use serde_json::Value;

use super::truth::{Kind, Record};
use super::{Row, Rows, Shown, finish};
use crate::page::nanoseconds;

pub(crate) fn export(fixture: &Fixture, trace: &Path, format: &str) -> PathBuf {
    let to = trace.with_extension(format);
    let mut command = tool(fixture);
    command.args(["export", "--format", format, "-o"]);
    let _ = finish(command.arg(&to).arg(trace));
    to
}

/// What babeltrace2 says of a trace: its lines, and its warnings.
fn babeltrace2(fixture: &Fixture, trace: &Path) -> Finished {
    let _ = std::fs::remove_dir_all(trace.with_extension("ctf"));
    let folder = export(fixture, trace, "ctf");
    let mut command = Command::new("babeltrace2");
    let done = run(command.arg("--clock-seconds").arg(folder), SOON);
    done.expect("babeltrace2").expect_code(0)
}

/// The records of spans and calls that it finds.
pub(crate) fn records(fixture: &Fixture, trace: &Path) -> Vec<Record> {
    let text = babeltrace2(fixture, trace).stdout_text();
    text.lines().filter_map(record).collect()
}

/// How many records of each name it finds, and how many are lost.
pub(crate) fn in_ctf(fixture: &Fixture, trace: &Path) -> (BTreeMap<String, u64>, u64) {
    let done = babeltrace2(fixture, trace);
    let mut counts = BTreeMap::new();
    for line in done.stdout_text().lines() {
        let (front, _) = line.split_once(": {").expect("fields");
        let name = front.rsplit(' ').next().expect("a name");
        *counts.entry(name.to_owned()).or_default() += 1;
    }
    (counts, discarded(&done.stderr_text()))
}

/// What babeltrace2 warns of.
pub(crate) fn discarded(text: &str) -> u64 {
    let lost = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("discarded ")?;
        rest.split(' ').next()?.parse::<u64>().ok()
    });
    lost.sum()
}

/// Events that are not here, over all threads: a question to the trace processor.
pub(crate) const LOST: &str = "select cast(coalesce(sum(most), 0) as int) from (select max(value) as most \
    from counter c join track t on t.id = c.track_id where t.name = 'events not here' group by c.track_id)";

/// What it answers to a question about one number.
pub(crate) fn number_in_perfetto(
    fixture: &Fixture,
    folder: &Path,
    trace: &Path,
    question: &str,
) -> u64 {
    let answers = ask(folder, &export(fixture, trace, "perfetto"), &[question]);
    let text = answers[0][0][0].as_str().expect("digits");
    text.parse().expect("digits")
}

/// `[TIME] (+DELTA) HOST:PROCESS:(PID) NAME: { tid = N, thread = "…" }, { FIELDS }`
fn record(line: &str) -> Option<Record> {
    let (time, rest) = line[1..].split_once(']').expect("a time");
    let (front, rest) = rest.split_once(": {").expect("fields");
    let name = front.rsplit(' ').next().expect("a name");
    let number = |key: &str| {
        let (_, value) = rest.split_once(&format!(" {key} = "))?;
        value.split([',', ' ']).next()?.parse::<u64>().ok()
    };
    let took_ns = number("took_ns");
    let (name, kind) = match (name, name.rsplit_once(':')) {
        ("span.enter", _) => (name, Kind::Enter),
        ("span.exit", _) => (name, Kind::Exit),
        ("span.close", _) => (name, Kind::Close),
        (_, Some((name, "function_entry"))) => (name, Kind::Entry),
        (_, Some((name, "function_exit" | "function_unwound"))) => (name, Kind::Left),
        _ if took_ns.is_some() => (name, Kind::Span),
        _ if number("span_id").is_some() => (name, Kind::New),
        _ => return None,
    };
    Some(Record {
        kind,
        name: name.to_owned(),
        thread: number("tid").expect("a thread"),
        span: number("span_id").unwrap_or(0),
        at_ns: time.replace('.', "").parse().expect("ns"),
        took_ns: took_ns.unwrap_or(0),
        depth: number("depth").unwrap_or(0),
    })
}

/// Rows of the table, by name.
const IN_DUCKDB: &str = r#"
import duckdb, json, sys
rows = duckdb.sql("""select name, count(*) from read_csv(?, all_varchar=true) where kind in ('span', 'call')
    group by name""", params=[sys.argv[1]]).fetchall()
print(json.dumps(dict(rows)))
"#;

/// What DuckDB counts in the table; `None`: it is not here.
pub(crate) fn duckdb(fixture: &Fixture, trace: &Path) -> Option<Shown> {
    if !does("python3", &["-c", "import duckdb"]) {
        return None;
    }
    let table = export(fixture, trace, "csv");
    let mut command = Command::new("python3");
    let said = finish(command.args(["-c", IN_DUCKDB]).arg(table));
    let counts = serde_json::from_str(&said).expect("JSON");
    Some(Shown {
        counts: Some(counts),
        ..Shown::default()
    })
}

/// A frame of a flame graph: where it is, how wide it is, and its name.
struct Frame {
    level: u64,
    at: u64,
    wide: u64,
    name: String,
}

/// `<title>NAME (N samples, P%)</title><rect x=… y="Y" … fg:x="AT" fg:w="WIDE"/>`; one line has all.
fn frames(svg: &str) -> Vec<Frame> {
    let number = |text: &str, key: &str| -> u64 {
        let (_, value) = text.split_once(&format!(" {key}=\"")).expect("a rectangle");
        let (value, _) = value.split_once('"').expect("a value");
        value.parse().expect("digits")
    };
    let frames = svg.split("<title>").skip(1).filter_map(|text| {
        let (title, rectangle) = text.split_once("</title>")?;
        let (name, _) = title.rsplit_once(" (")?;
        Some(Frame {
            level: number(rectangle, "y"),
            at: number(rectangle, "fg:x"),
            wide: number(rectangle, "fg:w"),
            name: name.to_owned(),
        })
    });
    frames.collect()
}

/// Own times in the flame graph that inferno draws; `None`: it is not here.
pub(crate) fn inferno(fixture: &Fixture, trace: &Path) -> Option<Shown> {
    if !does("inferno-flamegraph", &["--help"]) {
        return None;
    }
    let stacks = export(fixture, trace, "folded");
    let mut command = Command::new("inferno-flamegraph");
    let svg = finish(command.args(["--minwidth", "0"]).arg(stacks));
    let frames = frames(&svg);
    let ground = frames.iter().map(|frame| frame.level).max();
    let mut owns: BTreeMap<String, u64> = BTreeMap::new();
    for frame in frames.iter().filter(|frame| Some(frame.level) != ground) {
        *owns.entry(frame.name.clone()).or_default() += frame.wide - inside(frame, &frames);
    }
    Some(Shown {
        owns: Some(owns),
        ..Shown::default()
    })
}

/// The width of what lies on a frame.
fn inside(frame: &Frame, frames: &[Frame]) -> u64 {
    let above = frames.iter().filter(|other| other.level < frame.level);
    let Some(next) = above.map(|other| other.level).max() else {
        return 0;
    };
    let on_it = frames.iter().filter(|other| {
        other.level == next && (frame.at..frame.at + frame.wide).contains(&other.at)
    });
    on_it.map(|other| other.wide).sum()
}

/// What the trace processor finds of slices that have an end; those of events are left out. Spans of a thread lie in
/// each other, as calls do; a span over threads is alone.
pub(crate) fn perfetto(fixture: &Fixture, folder: &Path, trace: &Path, events: &[String]) -> Shown {
    const TIMES: &str = "select name, count(*), sum(case when exists (select 1 from ancestor_slice(s.id) a where \
        a.name = s.name) then 0 else dur end), sum(dur - coalesce((select sum(c.dur) from slice c where \
        c.parent_id = s.id), 0)) from slice s where dur >= 0 and name != 'events not here' \
        group by name";
    const PLACES: &str = "select s.name, coalesce(p.name, ''), count(*) from slice s left join slice p on \
        p.id = s.parent_id where s.dur >= 0 group by 1, 2";
    let file = export(fixture, trace, "perfetto");
    let answers = ask(folder, &file, &[TIMES, PLACES]);
    let text = |cell: &Value| cell.as_str().expect("a text").to_owned();
    let number = |cell: &Value| text(cell).parse::<u64>().expect("digits");
    let rows = answers[0].iter().map(|row| {
        let [count, total_ns, own_ns] = [1, 2, 3].map(|at| number(&row[at]));
        let row_of = Row {
            count,
            total_ns,
            own_ns,
        };
        (text(&row[0]), row_of)
    });
    let rows: Rows = rows.filter(|(name, _)| !events.contains(name)).collect();
    let places = answers[1].iter().map(|row| {
        let [name, around] = [0, 1].map(|at| text(&row[at]));
        ((name, around), number(&row[2]))
    });
    let places = places.filter(|((name, _), _)| rows.contains_key(name));
    Shown {
        places: Some(places.collect()),
        ..Shown::of(&rows)
    }
}

/// The table of the page of `report --html` in a browser.
pub(crate) fn page(fixture: &Fixture, browser: &str, trace: &Path) -> Shown {
    let table = table(&page_of(fixture, browser, trace)["spans"]);
    let rows = table.iter().map(|row| {
        let row_of = Row {
            count: count(&row["count"]),
            total_ns: known_ns(&row["total"]),
            own_ns: known_ns(&row["self"]),
        };
        (row["name"].clone(), row_of)
    });
    Shown {
        is_rounded: true,
        ..Shown::of(&rows.collect())
    }
}

/// Events, and events that are not here, of all threads on the page.
pub(crate) fn events_on_page(fixture: &Fixture, browser: &str, trace: &Path) -> [u64; 2] {
    let table = table(&page_of(fixture, browser, trace)["threads"]);
    ["events", "events not here"].map(|head| table.iter().map(|row| count(&row[head])).sum())
}

/// How long each thread ran, was ready and waited, in ns, by its id.
pub(crate) fn states_on_page(
    fixture: &Fixture,
    browser: &str,
    trace: &Path,
) -> BTreeMap<u32, [u64; 3]> {
    let table = table(&page_of(fixture, browser, trace)["threads"]);
    let rows = table.iter().map(|row| {
        let (_, id) = row["thread"].rsplit_once('[').expect("an id");
        let id = id.trim_end_matches(']').parse().expect("an id");
        (
            id,
            ["running", "ready", "waiting"].map(|head| known_ns(&row[head])),
        )
    });
    rows.collect()
}

fn page_of(fixture: &Fixture, browser: &str, trace: &Path) -> Value {
    let page = fixture.path("page.html");
    let mut command = tool(fixture);
    command.arg("report").arg(trace).args(["--html", "-o"]);
    let _ = finish(command.arg(&page));
    shown(fixture, browser, &page)
}

/// The rows of a table, each cell by its head.
fn table(cells: &Value) -> Vec<BTreeMap<String, String>> {
    let mut rows: Vec<Vec<String>> = serde_json::from_value(cells.clone()).expect("cells");
    if rows.is_empty() {
        return Vec::new();
    }
    let heads = rows.remove(0);
    let rows = rows.into_iter();
    rows.map(|row| heads.iter().cloned().zip(row).collect())
        .collect()
}

fn count(cell: &str) -> u64 {
    cell.replace(',', "").parse().expect("a count")
}

/// A duration as the page writes it; 0: it is not known.
fn known_ns(text: &str) -> u64 {
    if text.contains(' ') {
        nanoseconds(text) as u64
    } else {
        0
    }
}
