//! Promise: engines that exist read the tables of `ringmark compact`, and give equal answers: by a Delta log or by
//! the list of `ringmark store files`, from a directory or from S3. The programs in `engines/` are those of the guide.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;
#[allow(dead_code)]
#[path = "common/moto.rs"]
mod moto;
#[path = "common/spark.rs"]
mod spark;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use common_store::{Sent, Store, said};
use moto::{Moto, left_out, settings};
use ringmark_format::Uuid;
use spark::Spark;

const FLEET: &str = env!("CARGO_BIN_EXE_ringmark-fleet");
const SEED: &str = "21";
const SPANS: &str = "200000";
/// Runs of `compact`, each of which leaves a file in every hour.
const RUNS: usize = 3;
/// How far a percentile of `ringmark report --by` may be from the exact one.
const WITHIN: f64 = 0.022;

/// Where DuckDB looks for an extension.
const EXTENSIONS: &str = "\
import duckdb, glob, importlib, os, sys
to = os.path.join(sys.argv[1], '.duckdb/extensions/v' + duckdb.__version__, 'linux_amd64')
os.makedirs(to)
for name in sys.argv[2:]:
    at = os.path.dirname(importlib.import_module(name).__file__)
    for file in glob.glob(at + '/**/*.duckdb_extension', recursive=True):
        os.symlink(file, os.path.join(to, os.path.basename(file)))
";

/// Puts the tables of a store into the bucket.
const UPLOAD: &str = "\
import boto3, os, sys
s3 = boto3.client('s3', endpoint_url=os.environ['AWS_ENDPOINT_URL'])
for path in sys.stdin.read().split():
    s3.upload_file(path, 'bucket', os.path.relpath(path, sys.argv[1]))
";

/// Prints what ClickHouse answers.
const PANEL: &str = "\
import chdb, sys
print(chdb.connect().query(sys.argv[1], 'TabSeparated'), end='')
";

/// What an engine says of a name: calls, sum, minimum, maximum, and p99 by the nearest rank.
type Answers = BTreeMap<String, [i64; 5]>;

/// A store of what `examples/generate.rs` writes, with tables that took several runs.
fn store(name: &str) -> Store {
    let store = Store::new(name);
    let (generate, trace) = (
        Path::new(FLEET).with_file_name("examples/generate"),
        store.0.join("trace.rmk"),
    );
    let done = Command::new(generate)
        .arg(&trace)
        .args([SPANS, SEED])
        .status();
    assert!(done.expect("the generator").success());
    let sent = Sent::of_trace(&fs::read(&trace).expect("a trace"), Uuid([7; 16]));
    fs::remove_file(trace).expect("a trace");
    store.begin(&sent);
    let each = sent.pages.len().div_ceil(RUNS);
    for (number, pages) in sent.pages.chunks(each).enumerate() {
        let last = (number * each) + pages.len();
        let end = match last == sent.pages.len() {
            true => sent.end.clone(),
            false => sent.counters(last - 1),
        };
        store.segment(number as u64, &[(&sent, &[pages.concat(), end].concat())]);
        store.compact();
    }
    // What a killed run leaves: a file that no log names.
    let file = store.files("spans").remove(0);
    fs::copy(&file, file.with_file_name("orphan.parquet")).expect("a copy");
    assert!(store.files("spans").len() >= RUNS);
    store
}

/// The answers by the files of the log, without an engine.
fn expected(store: &Store) -> Answers {
    let mut durations: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    let files = store.files("spans");
    for batch in files.iter().flat_map(|file| common_store::batches(file)) {
        let column = |name: &str| batch.column_by_name(name).expect(name).clone();
        let (names, took) = (column("name"), column("dur_ns"));
        let took = took.as_primitive::<Int64Type>();
        for (row, took) in took.iter().enumerate() {
            let name = common_store::cell(&names, row);
            durations.entry(name).or_default().extend(took);
        }
    }
    let answer = |(name, mut took): (String, Vec<i64>)| {
        took.sort_unstable();
        let rank = (99 * took.len()).div_ceil(100);
        let sum = took.iter().sum();
        let (min, max) = (took[0], took[took.len() - 1]);
        (name, [took.len() as i64, sum, min, max, took[rank - 1]])
    };
    durations.into_iter().map(answer).collect()
}

/// A place where the programs of the guide run as they are shown, but for the path of the store and for how many rows
/// the query gives.
struct Stage {
    root: PathBuf,
    store: PathBuf,
}

impl Stage {
    fn new(store: &Store) -> Self {
        let stage = Self {
            root: store.0.join("stage"),
            store: store.0.canonicalize().expect("a store"),
        };
        fs::create_dir_all(stage.root.join("bin")).expect("a directory");
        symlink(FLEET, stage.root.join("bin/ringmark")).expect("a link");
        let query = fs::read_to_string("tests/engines/query.sql").expect("the query");
        let query = query.replace("LIMIT 20", "LIMIT 1000000");
        fs::write(stage.root.join("query.sql"), query).expect("a file");
        stage
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = self.root.join("bin");
        command.current_dir(&self.root).env("HOME", &self.root);
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
    }

    /// What a command prints that succeeds.
    fn printed(&self, command: &mut Command) -> String {
        let done = command.output().expect("it runs");
        assert!(done.status.success(), "{command:?}: {}", said(&done));
        String::from_utf8(done.stdout).expect("UTF-8")
    }

    /// Has DuckDB find these extensions.
    fn extend(&self, packages: &[&str]) {
        let _ = fs::remove_dir_all(self.root.join(".duckdb"));
        let mut python = self.command("python3");
        let python = python.args(["-c", EXTENSIONS]).arg(&self.root);
        let _ = self.printed(python.args(packages));
    }

    /// The answers of a program of the guide.
    fn answers(&self, program: &str, settings: &[(&'static str, String)]) -> Answers {
        let settings = settings.iter().cloned();
        self.answers_by(program, |python| {
            let _ = python.envs(settings);
        })
    }

    /// The same, with what a program needs.
    fn answers_by(&self, program: &str, set: impl FnOnce(&mut Command)) -> Answers {
        let text = fs::read_to_string(Path::new("tests/engines").join(program)).expect(program);
        let text = text.replace("/srv/traces", &self.store.display().to_string());
        fs::write(self.root.join(program), text).expect("a file");
        let mut python = self.command("python3");
        set(&mut python);
        let begun = std::time::Instant::now();
        let rows = self.printed(python.arg(program));
        println!("{program}: {:.1} s", begun.elapsed().as_secs_f64());
        let answer = |row: &str| {
            let cells: Vec<_> = row.split('\t').collect();
            let number = |at: usize| cells[at].parse::<i64>().expect(row);
            (cells[0].to_owned(), [1, 2, 3, 4, 5].map(number))
        };
        rows.lines().map(answer).collect()
    }

    /// The list of the files of spans.
    fn files(&self) -> String {
        let mut command = self.command("ringmark");
        self.printed(command.args(["store", "files"]).arg(&self.store))
    }
}

/// Whether Python has these packages. Where it has not, the test is named among those that were left out.
fn has(packages: &str) -> bool {
    let mut python = Command::new("python3");
    let there = python.args(["-c", &format!("import {packages}")]).output();
    let there = there.is_ok_and(|done| done.status.success());
    if !there {
        left_out(&format!("the Python packages {packages}"));
    }
    there
}

#[test]
fn engines_in_this_process_give_equal_answers() {
    let store = store("engines");
    let (expected, stage) = (expected(&store), Stage::new(&store));
    let calls: i64 = expected.values().map(|answer| answer[0]).sum();
    assert_eq!(calls.to_string(), SPANS);
    assert!(expected.len() > 1000);
    if has("duckdb, duckdb_extension_delta") {
        stage.extend(&["duckdb_extension_delta"]);
        assert_eq!(stage.answers("duckdb_delta.py", &[]), expected);
        assert_eq!(stage.answers("duckdb_files.py", &[]), expected);
    }
    if has("polars, deltalake") {
        assert_eq!(stage.answers("polars_delta.py", &[]), expected);
    }
    if has("chdb") {
        assert_eq!(stage.answers("clickhouse_delta.py", &[]), expected);
        assert_eq!(stage.answers("clickhouse_files.py", &[]), expected);
        panel(&stage);
    }
    near(&stage, &expected);
}

/// Runs the query of the guide's panel, with Grafana's macros written out.
fn panel(stage: &Stage) {
    let mut query = fs::read_to_string("tests/engines/grafana.sql").expect("the query");
    let store = stage.store.display().to_string();
    for (shown, run) in [
        ("/var/lib/clickhouse/user_files/traces", &*store),
        ("$__timeInterval(", "toStartOfSecond("),
        ("$__timeFilter(", "isNotNull("),
    ] {
        assert!(query.contains(shown), "{shown}");
        query = query.replace(shown, run);
    }
    let mut python = stage.command("python3");
    let python = python.args(["-c", PANEL]).current_dir(&stage.store);
    let rows = stage.printed(python.arg(query));
    let rows: Vec<_> = rows.lines().collect();
    let is_row = |row: &&&str| row.starts_with("2026-11-21 ") && !row.ends_with("\t0");
    assert_eq!(rows.iter().filter(is_row).count(), rows.len(), "{rows:?}");
    assert!(!rows.is_empty());
}

/// Compares percentiles of `ringmark report --by`, which reads the segments and not the tables.
fn near(stage: &Stage, expected: &Answers) {
    let mut command = stage.command("ringmark");
    let words = ["report", "--by", "name", "--csv"];
    let rows = stage.printed(command.args(words).arg(&stage.store));
    let mut worst: f64 = 0.0;
    let rows: Vec<Vec<_>> = rows.lines().map(|row| row.split(',').collect()).collect();
    for row in &rows[1..] {
        let number = |name: &str| {
            let at = rows[0].iter().position(|column| *column == name);
            row[at.expect(name)].trim().parse::<i64>().expect(name)
        };
        let answer = expected[row[0]];
        let figures = ["count", "sum_ns", "min_ns", "max_ns"].map(number);
        assert_eq!(figures, answer[..4], "{row:?}");
        let off = number("p99_ns") as f64 / answer[4] as f64 - 1.0;
        worst = worst.max(off.abs());
    }
    println!("p99 of report: {:.2} % off at most", 100.0 * worst);
    assert_eq!(rows.len() - 1, expected.len());
    assert!(worst <= WITHIN, "{worst}");
}

#[test]
fn duckdb_gives_equal_answers_from_s3() {
    if !has("duckdb, duckdb_extension_httpfs, boto3") {
        return;
    }
    let Some(moto) = Moto::start() else { return };
    let store = store("engines-s3");
    let stage = Stage::new(&store);
    let (files, set) = (stage.files(), settings(&moto.address()));
    let mut python = stage.command("python3");
    let python = python.args(["-c", UPLOAD]).arg(&stage.store);
    fs::write(stage.root.join("list"), &files).expect("a file");
    let list = fs::File::open(stage.root.join("list")).expect("it");
    let _ = stage.printed(python.stdin(list).envs(set.iter().cloned()));
    let files = files.replace(&stage.store.display().to_string(), "s3://bucket");
    fs::write(stage.root.join("files.txt"), files).expect("a file");
    stage.extend(&["duckdb_extension_httpfs"]);
    let mut set = set;
    set.push(("S3_HOST", moto.address()));
    assert_eq!(stage.answers("duckdb_s3.py", &set), expected(&store));
}

#[test]
fn spark_with_two_executors_gives_equal_answers() {
    let store = store("engines-spark");
    let stage = Stage::new(&store);
    let Some(spark) = Spark::at(stage.root.join("spark")) else {
        return;
    };
    let answers = stage.answers_by("spark_files.py", |python| spark.found_by(python));
    assert_eq!(answers, expected(&store));
    assert_eq!(spark.executors(), 2);
}
