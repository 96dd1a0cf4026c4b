//! Promise: the file holds the rows of `ringmark export --format csv`, in columns of the same names, whose types
//! DuckDB reads: counts and sums are equal, and so is each row.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, RecordBatch};
use common::random_trace::{RandomTrace, Step};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ringmark_decoder::{Chosen, CsvWriter, Dump, DumpBuilder, Filter};
use ringmark_format::session::Mode;

/// A directory of its own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("ringmark-fleet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a directory");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Runs the command; returns its exit code and what it said.
    fn run(&self, words: &str) -> (i32, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringmark-fleet"));
        let done = command.current_dir(&self.0).args(words.split(' ')).output();
        let done = done.expect("the command runs");
        let said = String::from_utf8(done.stderr).expect("UTF-8");
        (done.status.code().expect("it ends"), said)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A trace of random steps; the same for the same seed.
fn trace(seed: u64, steps: usize) -> Vec<u8> {
    let mut state = seed | 1;
    let mut below = |end: u64| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D) % end
    };
    let mut step = || -> Step {
        (
            below(2) as u8,
            below(2000) as u16,
            below(14) as u8,
            below(8) as u8,
        )
    };
    let steps: Vec<Step> = (0..steps).map(|_| step()).collect();
    RandomTrace::new(Mode::Discard, 2, 0).finish(&steps, true)
}

fn dump(path: &Path) -> Dump {
    let mut builder = DumpBuilder::new().bare();
    builder
        .read_file(path, File::open(path).expect("it"))
        .expect("a trace");
    builder.finish()
}

fn batches(path: &Path) -> Vec<RecordBatch> {
    let file = File::open(path).expect("the file");
    let reader = ParquetRecordBatchReaderBuilder::try_new(file)
        .expect("Parquet")
        .build();
    reader
        .expect("Parquet")
        .map(|batch| batch.expect("rows"))
        .collect()
}

/// The values of a column of integers.
fn column(batches: &[RecordBatch], name: &str) -> Vec<Option<i64>> {
    let columns = batches
        .iter()
        .map(|batch| batch.column_by_name(name).expect(name));
    columns
        .flat_map(|column| {
            column
                .as_primitive::<Int64Type>()
                .iter()
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn parquet_and_arrow_hold_the_rows() {
    let place = Place::new("rows");
    fs::write(place.path("a.rmk"), trace(19, 40_000)).expect("a trace file");
    let (code, said) = place.run("export a.rmk --format parquet -o a.parquet");
    assert!(code <= 1 && said.contains("rows"), "{code}: {said}");
    let (code, _) = place.run("export a.rmk --format arrow -o a.arrow --name tick");
    assert!(code <= 1);
    let (mut starts, mut durations, mut lost) = (Vec::new(), Vec::new(), Vec::new());
    let dump = dump(&place.path("a.rmk"));
    let end = dump.each_row(Chosen::default(), |row| {
        starts.push(row.start_ns.map(|ns| ns as i64));
        durations.push(row.dur_ns.map(|ns| ns as i64));
        lost.push(Some(row.lost_before as i64));
        Ok::<(), ()>(())
    });
    let end = end.expect("rows");
    assert!(
        end.rows > 20_000 && said.contains(&format!("{} rows", end.rows)),
        "{said}"
    );
    let found = batches(&place.path("a.parquet"));
    assert_eq!(column(&found, "ts_ns"), starts);
    assert_eq!(column(&found, "dur_ns"), durations);
    assert_eq!(column(&found, "lost_before"), lost);
    let arrow = File::open(place.path("a.arrow")).expect("the file");
    let arrow = arrow_ipc::reader::FileReader::try_new(arrow, None).expect("Arrow");
    let arrow: Vec<_> = arrow.map(|batch| batch.expect("rows")).collect();
    // Each number of `tick` is beyond 2^53 and below 2^63.
    let numbers = column(&arrow, "arg_n");
    assert!(numbers.len() > 1000 && numbers.iter().all(|n| n.is_some_and(|n| n > 1 << 53)));
    for batch in &arrow {
        assert!(batch.column_by_name("args").expect("args").null_count() == batch.num_rows());
    }
}

#[test]
fn what_was_there_is_replaced_or_set_aside_and_a_device_stays_one() {
    use std::os::unix::fs::FileTypeExt;
    let place = Place::new("former");
    fs::write(place.path("a.rmk"), trace(5, 100)).expect("a trace file");
    let (out, old) = (place.path("a.parquet"), place.path("a.parquet.old"));
    fs::write(&out, "mine").expect("a file");
    let (code, said) = place.run("export a.rmk --format parquet --from yesterday");
    assert_eq!(code, 2, "{said}");
    assert_eq!(fs::read(&out).expect("it"), b"mine");
    let (code, said) = place.run("export --format parquet -- a.rmk");
    assert!(
        code <= 1 && said.contains("a.parquet: was there, and is a.parquet.old now"),
        "{said}"
    );
    assert_eq!(fs::read(&old).expect("it"), b"mine");
    let (code, _) = place.run("export a.rmk --format parquet -o a.parquet");
    assert!(code <= 1 && !batches(&out).is_empty());
    assert_eq!(fs::read(&old).expect("it"), b"mine");
    fs::copy(place.path("a.rmk"), place.path("b.rmk")).expect("a trace file");
    let (code, said) = place.run("export a.rmk b.rmk --format arrow");
    assert!(code <= 1 && place.path("ringmark.arrow").exists(), "{said}");
    let (code, said) = place.run("export b.rmk --format parquet");
    assert!(
        code <= 1 && !batches(&place.path("b.parquet")).is_empty(),
        "{said}"
    );
    let (code, said) = place.run("export a.rmk --format parquet -o /dev/null");
    assert!(code <= 1, "{said}");
    let about = fs::metadata("/dev/null").expect("it");
    assert!(about.file_type().is_char_device());
    assert!(!Path::new("/dev/null.part").exists());
}

#[test]
fn what_cannot_be_read_or_written_is_said() {
    let place = Place::new("errors");
    for (words, code, text) in [
        ("export none.rmk -o out", 3, "none.rmk"),
        ("export a.rmk -o out --from yesterday", 2, "expected"),
        ("export a.rmk -o out --where took>", 2, "--where"),
        ("export a.rmk -o .", 1, "expected the name of a file"),
    ] {
        let words = &format!("{words} --format parquet");
        fs::write(place.path("a.rmk"), trace(3, 100)).expect("a trace file");
        let (found, said) = place.run(words);
        assert_eq!(found, code, "{words}: {said}");
        assert!(said.contains(text), "{words}: {said}");
    }
}

const DUCKDB: &str = r#"
import duckdb, sys
p, c = sys.argv[1], sys.argv[2]
one = lambda sql: duckdb.sql(sql).fetchall()[0]
figures = "count(*), count(dur_ns), sum(dur_ns), min(dur_ns), max(dur_ns), sum(ts_ns), sum(lost_before)"
print(*one(f"select {figures} from '{p}'"))
names = "ts_ns, dur_ns, kind, name, host, session, pid, tid, ring, page, idx, depth, lost_before, truncated"
csv = f"(select {names} from read_csv('{c}', sample_size=-1))"
parquet = f"(select {names} from '{p}')"
print(*one(f"select count(*) from ({parquet} except all {csv})"), *one(f"select count(*) from ({csv} except all {parquet})"))
kinds = one(f"select typeof(ts_ns), typeof(dur_ns), typeof(pid), typeof(ring), typeof(truncated) from '{p}' limit 1")
assert kinds == ("BIGINT", "BIGINT", "INTEGER", "BIGINT", "BOOLEAN"), kinds
"#;

#[test]
fn duckdb_finds_the_same() {
    let is_there = Command::new("python3")
        .args(["-c", "import duckdb"])
        .output();
    if !is_there.is_ok_and(|done| done.status.success()) {
        println!("left out: needs python3 with duckdb");
        return;
    }
    let place = Place::new("duckdb");
    fs::write(place.path("a.rmk"), trace(7, 20_000)).expect("a trace file");
    let (code, said) = place.run("export a.rmk --format parquet -o a.parquet");
    assert!(code <= 1, "{said}");
    let dump = dump(&place.path("a.rmk"));
    let mut writer = CsvWriter::new(dump.arg_columns(&Filter::new()));
    let mut csv = Vec::new();
    writer.header(&mut csv);
    let (mut rows, mut lost, mut starts, mut durations) = (0, 0, 0_i128, Vec::new());
    let end = dump.each_row(Chosen::default(), |row| {
        writer.write(row, &mut csv);
        rows += 1;
        lost += row.lost_before;
        starts += i128::from(row.start_ns.unwrap_or(0));
        durations.extend(row.dur_ns);
        Ok::<(), ()>(())
    });
    end.expect("rows");
    fs::write(place.path("a.csv"), csv).expect("a table");
    let mut python = Command::new("python3");
    python
        .args(["-c", DUCKDB])
        .args([place.path("a.parquet"), place.path("a.csv")]);
    let done = python.output().expect("python3");
    let said = String::from_utf8(done.stderr).expect("UTF-8");
    let found = String::from_utf8(done.stdout).expect("UTF-8");
    let (count, sum) = (durations.len(), durations.iter().sum::<u64>());
    let (min, max) = (
        durations.iter().min().unwrap(),
        durations.iter().max().unwrap(),
    );
    let expected = format!("{rows} {count} {sum} {min} {max} {starts} {lost}\n0 0\n");
    assert_eq!(found, expected, "{said}");
}
