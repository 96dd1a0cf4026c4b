//! Promise: `report --paths`, `--callers` and `--callees` count each call and span once, on its path.

use std::collections::BTreeMap;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, tool};
use ringmark_tests::{require_tools, run};

/// A row: what is in its columns, by heading; and how far the name is indented.
struct Row {
    cells: BTreeMap<String, String>,
    depth: usize,
}

impl Row {
    fn cell(&self, heading: &str) -> &str {
        &self.cells[heading]
    }

    fn count(&self) -> u64 {
        self.cell("COUNT")
            .replace(',', "")
            .parse()
            .expect("a number")
    }
}

/// The rows of the first table that a command prints.
fn rows(fixture: &Fixture, words: &str) -> Vec<Row> {
    let mut report = tool(fixture);
    report
        .current_dir(fixture.path("."))
        .args(words.split_whitespace());
    let text = run(&mut report, LIMIT).expect("ringmark").stdout_text();
    let mut lines = text.lines().skip_while(|line| !line.contains("COUNT"));
    let headings = lines.next().expect("a table");
    let of_names = ["NAME", "CALLER", "CALLED"];
    let name = of_names.iter().find_map(|heading| headings.find(heading));
    let name = name.expect("a column of names");
    let headings: Vec<_> = cells(headings);
    let rows = lines.take_while(|line| line.len() > name && line.contains("  "));
    rows.map(|line| {
        let indented = &line[name..];
        let indent = indented.len() - indented.trim_start().len();
        let cells = headings.iter().cloned().zip(cells(line)).collect();
        Row {
            cells,
            depth: indent / 2,
        }
    })
    .collect()
}

/// Cells stand at least two columns from each other.
fn cells(line: &str) -> Vec<String> {
    let cells = line.split("  ").map(str::trim);
    let cells = cells.filter(|cell| !cell.is_empty());
    cells.map(str::to_owned).collect()
}

/// Each path, as names from the outermost one on, with its count.
fn paths(rows: &[Row]) -> BTreeMap<String, u64> {
    let mut around: Vec<&str> = Vec::new();
    let mut found = BTreeMap::new();
    for row in rows {
        around.truncate(row.depth);
        around.push(row.cell("NAME"));
        found.insert(around.join(";"), row.count());
    }
    found
}

fn traced(label: &str) -> Option<Fixture> {
    if !require_tools(&["gcc"]) {
        return None;
    }
    let fixture = Fixture::new(label);
    let program = compile(&fixture, "call_paths.c", "callers", &format!("{SITES} -O1"));
    let mut run_it = tool(&fixture);
    run_it.current_dir(fixture.path("."));
    run_it.args("run --kind graph --all-functions -o a.rmk --".split(' '));
    let _ = run(run_it.arg(program), LIMIT)
        .expect("ringmark")
        .expect_code(0);
    Some(fixture)
}

#[test]
fn each_call_is_on_its_path() {
    let Some(fixture) = traced("paths") else {
        return;
    };
    let tree = rows(&fixture, "report a.rmk --paths");
    let expected = [
        ("main", 1),
        ("main;deeper", 10),
        ("main;deeper;deeper", 10),
        ("main;deeper;deeper;deeper", 10),
        ("main;deeper;deeper;deeper;leaf", 10),
        ("main;deeper;deeper;leaf", 10),
        ("main;deeper;leaf", 10),
        ("main;twice", 10),
        ("main;twice;leaf", 20),
    ];
    let expected = expected.map(|(path, count)| (path.to_owned(), count));
    assert_eq!(paths(&tree), expected.into());
    let sums = rows(&fixture, "report a.rmk");
    for name in ["main", "twice"] {
        let of = |rows: &[Row]| {
            let row = rows.iter().find(|row| row.cell("NAME") == name);
            ["TOTAL", "SELF", "MEAN"].map(|heading| row.expect("it").cell(heading).to_owned())
        };
        assert_eq!(of(&tree), of(&sums), "{name}: it is on one path");
    }
}

#[test]
fn callers_and_callees_are_those_of_one_function() {
    let Some(fixture) = traced("callers") else {
        return;
    };
    let found = |words: &str| -> Vec<(String, u64)> {
        let rows = rows(&fixture, words);
        let heading = match words.contains("--callers") {
            true => "CALLER",
            false => "CALLED",
        };
        let row = |row: &Row| (row.cell(heading).to_owned(), row.count());
        rows.iter().map(row).collect()
    };
    let named = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
        let rows = rows.iter();
        rows.map(|(name, count)| ((*name).to_owned(), *count))
            .collect()
    };
    assert_eq!(
        found("report a.rmk --callers leaf --sort count"),
        named(&[("deeper", 30), ("twice", 20)])
    );
    assert_eq!(
        found("report a.rmk --callees deeper --sort count"),
        named(&[("leaf", 30), ("deeper", 20)])
    );
    assert_eq!(
        found("report a.rmk --callers main"),
        named(&[("(no caller here)", 1)])
    );
    assert_eq!(
        found("report a.rmk --callers leaf --sort name -n 1"),
        named(&[("deeper", 30)])
    );
    let mut nobody = tool(&fixture);
    nobody.current_dir(fixture.path("."));
    nobody.args(["report", "a.rmk", "--callers", "laef"]);
    let nobody = run(&mut nobody, LIMIT).expect("ringmark").expect_code(2);
    assert!(
        nobody.stderr_text().contains("closest names: leaf"),
        "{nobody:?}"
    );
}

/// A piece of a trace does not have what was in a call before.
#[test]
fn own_time_that_is_not_known_is_no_time() {
    let Some(fixture) = traced("paths-piece") else {
        return;
    };
    let calls = tool_json(&fixture, "graph a.rmk --json");
    let middle = calls[calls.len() / 2]["t_ns"].as_u64().expect("a time");
    let mut cut = tool(&fixture);
    cut.current_dir(fixture.path("."))
        .args(["cut", "a.rmk", "-o", "piece.rmk"]);
    cut.args(["--from", &format!("{}s", middle as f64 / 1e9)]);
    let _ = run(&mut cut, LIMIT).expect("ringmark").expect_code(0);
    let own = |words: &str| -> String {
        let rows = rows(&fixture, words);
        let main = rows.iter().find(|row| row.cell("NAME") == "main");
        main.expect("it is on the way").cell("SELF").to_owned()
    };
    assert_eq!(own("report piece.rmk"), "-");
    assert_eq!(own("report piece.rmk --paths"), "-");
}

fn tool_json(fixture: &Fixture, words: &str) -> Vec<serde_json::Value> {
    let mut command = tool(fixture);
    command
        .current_dir(fixture.path("."))
        .args(words.split_whitespace());
    let text = run(&mut command, LIMIT).expect("ringmark").stdout_text();
    let lines = text.lines().map(serde_json::from_str);
    lines.map(|line| line.expect("JSON")).collect()
}

#[test]
fn tasks_and_native_spans_have_paths() {
    let fixture = Fixture::new("paths-spans");
    let mut record = tool(&fixture);
    record
        .current_dir(fixture.path("."))
        .args(["record", "-o", "a.rmk", "--"]);
    record.args([ringmark_tests::program!("orders"), "3", "300"]);
    let _ = run(&mut record, LIMIT).expect("ringmark").expect_code(0);
    let found = paths(&rows(&fixture, "report a.rmk --paths"));
    let sums = rows(&fixture, "report a.rmk");
    let of = |name: &str| {
        sums.iter()
            .find(|row| row.cell("NAME") == name)
            .map(Row::count)
    };
    let on = |path: &str| found.get(path).copied();
    assert_eq!(found.len(), 5, "{found:?}");
    for (path, name) in [
        ("order", "order"),
        ("order;db_query", "db_query"),
        ("order;resize", "resize"),
        ("job", "job"),
        ("job;job.part", "job.part"),
    ] {
        assert!(
            on(path).is_some() && on(path) == of(name),
            "{path}: {found:?}"
        );
    }
}
