//! What readers of a store find of the numbers that programs emitted. A line is what was emitted and its number, such
//! as `emitter.turn 17`, and ` open` after the number of a span without an end.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::duckdb::duckdb;
use super::scene::{FLEET, Scene};
use super::spark::Spark;

/// How often each line is found.
pub(crate) type Found = BTreeMap<String, usize>;

/// Prints a row for each span and event by the logs of the tables.
const BY_LOG: &str = r#"
for table in ["spans", "events"]:
    rows = db.sql(f"select name, coalesce(dur_ns::varchar, ''), args from delta_scan('{given[0]}/tables/{table}')")
    for row in rows.fetchall():
        print(*row, sep="\t")
"#;

/// The command that prints rows.
pub(crate) const ROWS: [&str; 5] = ["export", "--format", "csv", "-o", "-"];

/// How an engine names the files of a table by its log.
const LOG: &str = "delta_scan('{given[0]}/tables/{table}')";
/// The same by their names, which finds those that no longer count.
const GLOB: &str = "read_parquet('{given[0]}/tables/{table}/**/*.parquet')";

/// The same rows by lists of files, read by two executors of Spark.
const BY_LIST: &str = r#"
import sys
from pyspark.sql import SparkSession
local = SparkSession.builder.master("local-cluster[2,1,512]")
spark = local.config("spark.executor.memory", "512m").getOrCreate()
for files in sys.argv[1:]:
    rows = spark.read.parquet(*files.split())
    for row in rows.selectExpr("name", "coalesce(cast(dur_ns as string), '')", "args").collect():
        print(*row, sep="\t")
"#;

/// A store, and what was emitted.
pub(crate) struct Expected<'s> {
    pub(crate) scene: &'s Scene,
    pub(crate) written: BTreeSet<String>,
}

impl Expected<'_> {
    /// Compares what a reader found, each once, with the list. The error: what differs.
    pub(crate) fn differs(&self, reader: &str, found: &Found) -> Result<(), String> {
        if let Some((line, times)) = found.iter().find(|(_, times)| **times != 1) {
            return Err(format!("{reader}: {line} is there {times} times"));
        }
        let found: BTreeSet<_> = found.keys().cloned().collect();
        let some = |of: &BTreeSet<String>, other: &BTreeSet<String>| -> Vec<String> {
            of.difference(other).take(3).cloned().collect()
        };
        let (missing, more) = (some(&self.written, &found), some(&found, &self.written));
        match missing.is_empty() && more.is_empty() {
            true => Ok(()),
            false => Err(format!(
                "{reader}: {} of {} lines, without {missing:?}, with {more:?}",
                found.len(),
                self.written.len()
            )),
        }
    }

    /// The same for readers of the segments. A span without an end has no row there.
    pub(crate) fn segments_differ(&self) -> Result<(), String> {
        self.only(|line| !line.ends_with(" open"))
            .differs("scan", &scanned(self.scene))?;
        self.only(|line| line.contains(".place "))
            .differs("cat", &shown(self.scene))
    }

    /// The list with those lines alone.
    fn only(&self, is_in: impl Fn(&String) -> bool) -> Self {
        let written = self.written.iter().filter(|line| is_in(line));
        Self {
            scene: self.scene,
            written: written.cloned().collect(),
        }
    }

    /// The same for DuckDB, which reads the tables at an address.
    pub(crate) fn tables_differ(&self, address: &str) -> Result<(), String> {
        let rows = duckdb(address, BY_LOG, [self.scene.store]);
        rows.map_or(Ok(()), |rows| self.differs("DuckDB", &of_rows(&rows, '\t')))
    }

    /// The same for Spark, which reads the files of a copy of the tables that a list names. `objects`: all of the
    /// tables.
    pub(crate) fn spark_differs(&self, objects: Vec<(String, Vec<u8>)>) -> Result<(), String> {
        let Some(spark) = Spark::at(self.scene.path("spark")) else {
            return Ok(());
        };
        let copy = self.scene.path("copy");
        for (name, bytes) in objects {
            let path = copy.join(name);
            fs::create_dir_all(path.parent().expect("one")).expect("a directory");
            fs::write(path, bytes).expect("an object");
        }
        let listed = ["spans", "events"].map(|table| {
            let mut files = self.scene.command(FLEET);
            files.args(["store", "files", "--table", table]).arg(&copy);
            String::from_utf8(files.output().expect("a list").stdout).expect("UTF-8")
        });
        let mut python = self.scene.command("python3");
        spark.found_by(&mut python);
        let done = python.args(["-c", BY_LIST]).args(&listed).output();
        let done = done.expect("python3");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{said}");
        assert_eq!(spark.executors(), 2);
        let rows = String::from_utf8_lossy(&done.stdout);
        self.differs("Spark", &of_rows(&rows, '\t'))
    }

    /// The same without the log. `None`: DuckDB is not here.
    pub(crate) fn globbed_tables_differ(&self, address: &str) -> Option<Result<(), String>> {
        let rows = duckdb(address, &BY_LOG.replace(LOG, GLOB), [self.scene.store])?;
        Some(self.differs("DuckDB", &of_rows(&rows, '\t')))
    }
}

/// What `ringmark export --format csv` finds.
pub(crate) fn scanned(scene: &Scene) -> Found {
    let rows = scene.read(&ROWS);
    let row = |row: &str| {
        let cells: Vec<_> = row.splitn(5, ',').collect();
        format!("{},{},{}\n", cells[3], cells[1], cells[4])
    };
    let rows: String = rows.lines().skip(1).map(row).collect();
    of_rows(&rows, ',')
}

/// What `ringmark cat` finds of events.
fn shown(scene: &Scene) -> Found {
    let lines = scene.read(&["cat", "--name", "emitter.place"]);
    // Others say what was lost.
    let lines = lines.lines().filter(|line| line.contains("emitter.place"));
    counted(lines.map(|line| {
        let number = line.rsplit_once("n=").expect(line).1;
        format!("emitter.place {}", number.trim())
    }))
}

/// Lines of rows with a name, a duration, and somewhere the arguments.
fn of_rows(rows: &str, between: char) -> Found {
    counted(rows.lines().filter_map(|row| {
        let mut cells = row.splitn(3, between);
        let (name, took, rest) = (cells.next()?, cells.next()?, cells.next()?);
        // A flow has none. Quotes are doubled in CSV.
        let (_, number) = rest
            .split_once("n\":")
            .or_else(|| rest.split_once("n\"\":"))?;
        let end = number.find(|c: char| !c.is_ascii_digit())?;
        let is_open = name == "emitter.shift" && took.is_empty();
        let open = if is_open { " open" } else { "" };
        Some(format!("{name} {}{open}", &number[..end]))
    }))
}

fn counted(lines: impl Iterator<Item = String>) -> Found {
    let mut counted = BTreeMap::new();
    lines.for_each(|line| *counted.entry(line).or_default() += 1);
    counted
}
