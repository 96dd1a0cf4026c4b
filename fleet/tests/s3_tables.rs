//! Promise: tables in a bucket have each row of a scan once, whatever the way to the bucket does, whichever run is killed
//! before or after a commit, and whatever other runs there are at the same time.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;
#[allow(dead_code, reason = "requests to read are not counted here")]
#[path = "common/fault_proxy.rs"]
mod fault_proxy;
#[path = "common/moto.rs"]
mod moto;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/src/random.rs"]
mod random;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common_store::{Sent, Store, said};
use fault_proxy::{Fault, FaultProxy};
use moto::Moto;
use random::Random;

const BUCKET: &str = "s3://bucket/of/tests";
/// The server asks who reads, and not whether it is true.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
    SignedHeaders=host, Signature=0";
const WITHIN: Duration = Duration::from_secs(120);
/// Each fault happens as often.
const EACH: usize = 4;

/// A store whose objects are in a bucket, too, and its tables there alone.
struct Scene {
    store: Store,
    moto: Moto,
}

impl Scene {
    /// With some segments of two sessions; the rows that a scan finds in all of them. `None`: there is no server.
    fn new(name: &str, segments: usize) -> Option<(Self, Vec<String>)> {
        let moto = Moto::start()?;
        let sent = [Sent::new(19, 1500), Sent::new(23, 1000)];
        let store = Store::new(name);
        sent.iter().for_each(|sent| store.begin(sent));
        for number in 0..segments {
            let of = sent.iter().map(|sent| {
                let each = sent.pages.len().div_ceil(segments);
                let pages = sent.pages.chunks(each).nth(number).unwrap_or_default();
                let mut blocks = pages.concat();
                let last = ((number + 1) * each).min(sent.pages.len()) - 1;
                blocks.extend(sent.counters(last));
                if number + 1 == segments {
                    blocks.extend_from_slice(&sent.end);
                }
                (sent, blocks)
            });
            let of: Vec<_> = of.collect();
            let of: Vec<_> = of
                .iter()
                .map(|(sent, blocks)| (*sent, &blocks[..]))
                .collect();
            store.segment(number as u64, &of);
        }
        let rows = store.scanned();
        assert!(rows.len() > 1000, "{}", rows.len());
        let scene = Self { store, moto };
        for name in ["schema", "ringmark-store.json"] {
            scene.upload(name);
        }
        Some((scene, rows))
    }

    /// Puts what is at a path of the store, or below it, into the bucket.
    fn upload(&self, name: &str) {
        let path = self.store.0.join(name);
        if let Ok(entries) = fs::read_dir(&path) {
            for entry in entries {
                let entry = entry.expect("an entry").file_name();
                self.upload(&format!("{name}/{}", entry.display()));
            }
            return;
        }
        let bytes = fs::read(path).expect("an object");
        let answer = self.ask("PUT", &format!("/bucket/of/tests/{name}"), &bytes);
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{name}");
    }

    /// Uploads a segment.
    fn segment(&self, number: usize) {
        let hour = "raw/v2/2026-11-26-19";
        let collector = fs::read_dir(self.store.0.join(hour))
            .expect("a directory")
            .next();
        let collector = collector
            .expect("a collector")
            .expect("an entry")
            .file_name();
        self.upload(&format!("{hour}/{}/{number:012}.rms", collector.display()));
    }

    /// What the server answers.
    fn ask(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let address = self.moto.address();
        let mut asking = TcpStream::connect(&address).expect("a connection");
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {}\r\n{SIGNED}\r\nConnection: close\r\n\r\n",
            body.len()
        );
        asking
            .write_all(&[head.as_bytes(), body].concat())
            .expect("a request");
        let mut answer = Vec::new();
        let _ = asking.read_to_end(&mut answer).expect("an answer");
        answer
    }

    /// The command, with the bucket at an address.
    fn command(&self, words: &str, address: &str) -> Command {
        let mut command = self.store.command(words);
        command.envs(moto::settings(address)).stdin(Stdio::null());
        command
    }

    /// Makes tables until a run is through, by way of an address. Returns how many runs there were.
    fn compact(&self, address: &str) -> usize {
        for run in 1..50 {
            let done = self.command(&format!("compact {BUCKET}"), address).output();
            if done
                .expect("it runs")
                .status
                .code()
                .is_some_and(|code| code <= 1)
            {
                return run;
            }
        }
        panic!("no run is through");
    }

    /// Gets the tables, and compares their rows with those of a scan.
    fn check(&self, rows: &[String], what: &str) {
        let _ = fs::remove_dir_all(self.store.0.join("tables"));
        let listed = self
            .moto
            .ask("GET", "/bucket?list-type=2&prefix=of/tests/tables");
        assert!(listed.contains("<IsTruncated>false"), "{listed}");
        for key in listed.split("<Key>").skip(1) {
            let key = key.split("</Key>").next().expect("a key");
            let name = key.strip_prefix("of/tests/").expect("a name");
            let answer = self.ask("GET", &format!("/bucket/{key}"), b"");
            let end = answer
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .expect("a head");
            assert!(answer.starts_with(b"HTTP/1.1 200"), "{key}");
            self.store.put(name, &answer[end + 4..]);
        }
        let unended = self.store.check(rows, what);
        assert!(unended > 0, "{what}");
    }
}

#[test]
fn no_fault_on_the_way_loses_or_repeats_a_row() {
    let Some((scene, rows)) = Scene::new("s3-faults", 8) else {
        return;
    };
    let faulty = FaultProxy::start(&scene.moto.address(), EACH, &mut Random::seeded());
    let faulty = faulty.of_creates();
    let mut runs = 0;
    for number in 0..8 {
        scene.segment(number);
        runs += scene.compact(faulty.address());
    }
    // Merges are commits, too.
    while !faulty.is_done() {
        let merge = format!("compact {BUCKET} --merge");
        let _ = scene
            .command(&merge, faulty.address())
            .output()
            .expect("it runs");
        scene.segment(0);
        runs += 1;
        assert!(runs < 200, "{:?}", faulty.faults());
    }
    println!("{runs} runs, {:?}", faulty.faults());
    assert!(
        Fault::ALL
            .iter()
            .all(|fault| faulty.faults()[fault] >= EACH)
    );
    let _ = scene.compact(&scene.moto.address());
    scene.check(&rows, "after all faults");
}

#[test]
fn runs_that_are_killed_at_a_commit_are_taken_up() {
    let Some((scene, rows)) = Scene::new("s3-killed", 6) else {
        return;
    };
    let holding = FaultProxy::holding(&scene.moto.address()).of_creates();
    for number in 0..6 {
        scene.segment(number);
        // The commit is not there in one case, and in the other it is, and no run knows.
        let held = [Fault::HeldBefore, Fault::HeldAfter][number % 2];
        let mut run = scene.command(&format!("compact {BUCKET}"), holding.address());
        let mut run = run.stderr(Stdio::null()).spawn().expect("it runs");
        let begun = Instant::now();
        while !holding.holds(held) {
            assert!(
                run.try_wait().expect("a process").is_none(),
                "it met no {held:?}"
            );
            assert!(begun.elapsed() < WITHIN);
            sleep(Duration::from_millis(1));
        }
        run.kill().expect("a process");
        let _ = run.wait();
    }
    let _ = scene.compact(&scene.moto.address());
    scene.check(&rows, "after all kills");
}

#[test]
fn two_at_the_same_time_give_each_row_once_and_duckdb_reads_them() {
    let Some((scene, rows)) = Scene::new("s3-two", 3) else {
        return;
    };
    let address = scene.moto.address();
    for number in 0..3 {
        scene.segment(number);
        let words = format!("compact {BUCKET}");
        let runs = [(); 2].map(|()| scene.command(&words, &address).spawn().expect("it runs"));
        for mut run in runs {
            let code = run.wait().expect("it ends").code();
            assert!(code.is_some_and(|code| code <= 1), "{code:?}");
        }
    }
    scene.check(&rows, "two at the same time");
    let listed = scene
        .command(&format!("store files {BUCKET}"), &address)
        .output();
    let listed = String::from_utf8(listed.expect("it runs").stdout).expect("UTF-8");
    let of_log = scene.store.files("spans");
    assert_eq!(listed.lines().count(), of_log.len());
    assert!(
        listed
            .lines()
            .all(|line| line.starts_with(&format!("{BUCKET}/tables/spans/")))
    );
    let spans: usize = of_log
        .iter()
        .flat_map(|file| common_store::batches(file))
        .map(|of| of.num_rows())
        .sum();
    duckdb(&address, &listed, spans);
}

/// DuckDB counts rows by the log and by the list of files.
fn duckdb(address: &str, listed: &str, rows: usize) {
    let needs = "import duckdb, duckdb_extension_delta, duckdb_extension_httpfs";
    let there = Command::new("python3").args(["-c", needs]).output();
    if !there.is_ok_and(|done| done.status.success()) {
        return moto::left_out(
            "the Python packages duckdb, duckdb_extension_delta and duckdb_extension_httpfs",
        );
    }
    const COUNT: &str = r#"
import duckdb, glob, importlib, os, sys
db = duckdb.connect(config={"allow_unsigned_extensions": "true"})
for name in ["httpfs", "delta"]:
    where = os.path.dirname(importlib.import_module(f"duckdb_extension_{name}").__file__)
    place, = glob.glob(os.path.join(where, "**", f"{name}.duckdb_extension"), recursive=True)
    db.sql(f"LOAD '{place}'")
address, table, *files = sys.argv[1:]
db.sql(f"""CREATE SECRET (TYPE s3, KEY_ID 'test', SECRET 'test', REGION 'us-east-1', ENDPOINT '{address}',
    URL_STYLE 'path', USE_SSL false)""")
print(*db.sql(f"select count(*) from delta_scan('{table}')").fetchall()[0])
print(*db.sql(f"select count(*) from read_parquet({files})").fetchall()[0])
"#;
    let mut count = Command::new("python3");
    count.args(["-c", COUNT, address, &format!("{BUCKET}/tables/spans")]);
    let done = count.args(listed.lines()).output().expect("python3");
    assert!(done.status.success(), "{}", said(&done));
    let counted = String::from_utf8(done.stdout).expect("UTF-8");
    assert_eq!(counted, format!("{rows}\n{rows}\n"));
}
