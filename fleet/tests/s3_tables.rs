//! Promise: tables in a bucket have each row of an export once, whatever the way to the bucket does, whichever run is killed
//! before or after a commit, and whatever other runs there are at the same time.

#[path = "../../decoder/tests/common/mod.rs"]
mod common;
mod common_store;
#[path = "common/duckdb.rs"]
mod duckdb;
#[allow(dead_code, reason = "requests to read are not counted here")]
#[path = "common/fault_proxy.rs"]
mod fault_proxy;
#[path = "common/moto.rs"]
mod moto;
#[allow(dead_code, unreachable_pub)]
#[path = "../../tests/src/random.rs"]
mod random;

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::{Duration, Instant};

use common_store::{Sent, Store};
use duckdb::duckdb;
use fault_proxy::{Fault, FaultProxy};
use moto::Moto;
use random::Random;

const BUCKET: &str = "s3://bucket/of/tests";
const WITHIN: Duration = Duration::from_secs(120);
/// Each fault happens as often.
const EACH: usize = 4;
/// What a request to create an object meets.
const FAULTS: [Fault; 7] = [
    Fault::Busy,
    Fault::FailedAfter,
    Fault::CutBody,
    Fault::CutAnswer,
    Fault::Refused,
    Fault::Conflict,
    Fault::Late,
];

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
        self.moto.upload("of/tests", &self.store.0, name);
    }

    /// Uploads a segment.
    fn segment(&self, number: usize) {
        let hour = format!("raw/v2/{}", common_store::hour());
        let collector = fs::read_dir(self.store.0.join(&hour))
            .expect("a directory")
            .next();
        let collector = collector
            .expect("a collector")
            .expect("an entry")
            .file_name();
        self.upload(&format!("{hour}/{}/{number:012}.rms", collector.display()));
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
        for (name, bytes) in self.moto.objects("of/tests", "tables") {
            self.store.put(&name, &bytes);
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
    let plan = fault_proxy::plan(&FAULTS.map(|fault| (fault, EACH)), &mut Random::seeded());
    let faulty = FaultProxy::start(&scene.moto.address(), plan).of_creates();
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
    assert!(FAULTS.iter().all(|fault| faulty.faults()[fault] >= EACH));
    let _ = scene.compact(&scene.moto.address());
    scene.check(&rows, "after all faults");
}

#[test]
fn runs_that_are_killed_at_a_commit_are_taken_up() {
    let Some((scene, rows)) = Scene::new("s3-killed", 6) else {
        return;
    };
    // The commit is not there in some cases, and in the others it is, and no run knows.
    let plan = Fault::KILLS.repeat(2).into_iter().map(Some).collect();
    let run: Arc<Mutex<Option<Child>>> = Arc::default();
    let running = run.clone();
    let kill = move |_, _| {
        let mut run = running.lock().expect("no panic");
        let _ = run.as_mut().expect("a run").kill();
    };
    let killing = FaultProxy::of_clients(&scene.moto.address(), 1, plan, kill).of_creates();
    for number in 0..6 {
        scene.segment(number);
        let mut command = scene.command(&format!("compact {BUCKET}"), killing.address());
        command.stderr(Stdio::null());
        *run.lock().expect("no panic") = Some(command.spawn().expect("it runs"));
        let begun = Instant::now();
        let ended = || {
            run.lock()
                .expect("no panic")
                .as_mut()?
                .try_wait()
                .expect("a process")
        };
        let status = loop {
            if let Some(status) = ended() {
                break status;
            }
            assert!(begun.elapsed() < WITHIN);
            sleep(Duration::from_millis(1));
        };
        assert_eq!(status.signal(), Some(9), "it met no fault: {status}");
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
    count(&address, &listed, spans);
}

/// DuckDB counts rows by the log and by the list of files.
fn count(address: &str, listed: &str, rows: usize) {
    const COUNT: &str = r#"
table, *files = given
print(*db.sql(f"select count(*) from delta_scan('{table}')").fetchall()[0])
print(*db.sql(f"select count(*) from read_parquet({files})").fetchall()[0])
"#;
    let spans = format!("{BUCKET}/tables/spans");
    let given = [&*spans].into_iter().chain(listed.lines());
    let counted = duckdb(address, COUNT, given);
    assert!(counted.is_none_or(|counted| counted == format!("{rows}\n{rows}\n")));
}
