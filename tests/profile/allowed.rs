//! Promise: whatever a host allows, the answer is never empty, and what could not be had is said. The cases and what is
//! to be seen in each are the table of the guide's page `slow.md`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, SITES, compile, library};
use ringmark_tests::recording::decode;
use ringmark_tests::{
    Finished, Running, binary, log_skip, require_tools, run, wait_until, workspace_root,
};

/// Users of nothing.
const USER: u32 = 65534;
const OTHER: u32 = 65533;
/// Number of `perf_event_open`.
const PERF: &str = "298";

/// Programs that the cases need.
struct Stage {
    fixture: Fixture,
    shop: PathBuf,
    /// The same with patch sites.
    traced: PathBuf,
    /// The same, which becomes `USER` when it begins.
    changed: PathBuf,
    filtered: PathBuf,
}

impl Stage {
    fn new(label: &str) -> Self {
        let fixture = Fixture::new(label);
        let shop = compile(&fixture, "../c/shop.c", "shop", "-O2 -pthread");
        let sites = format!("{SITES} -pthread");
        let traced = compile(&fixture, "../c/shop.c", "shop-traced", &sites);
        let flags = "-O2 -pthread ../c/other_user.c";
        let changed = compile(&fixture, "../c/shop.c", "shop-changed", flags);
        let filtered = compile(&fixture, "filtered.c", "filtered", "-O1");
        Self {
            fixture,
            shop,
            traced,
            changed,
            filtered,
        }
    }

    /// Starts a command that becomes the shop, and waits until that is open.
    fn open(&self, mut command: Command) -> Running {
        let running = Running::start(&mut command).expect("a shop");
        let of_it = format!("/proc/{}", running.id());
        wait_until(SOON, "a shop with four threads", || {
            let name = fs::read_to_string(format!("{of_it}/comm")).ok()?;
            let threads = fs::read_dir(format!("{of_it}/task")).ok()?.count();
            (name.starts_with("shop") && threads == 4).then_some(())
        });
        running
    }

    fn as_user(&self, uid: u32, exe: &Path) -> Command {
        let mut command = self.fixture.command("setpriv");
        let uid = uid.to_string();
        command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups"]);
        command.arg(exe);
        command
    }

    /// Looks at a process of a user, by a command that ends in the binary's name.
    fn look(&self, mut command: Command, target: &Running) -> Seen {
        let pid = target.id().to_string();
        command.args([
            "profile", "--for", "700ms", "--sample", "499", "--wide", "-p",
        ]);
        let said = run(command.arg(pid), LIMIT).expect("ringmark");
        Seen::of(&said.expect_code(0))
    }

    /// The cells of a case, by its name in the guide; `None`: it cannot be had here.
    fn seen(&self, case: &str) -> Option<Seen> {
        let ringmark = binary::path();
        let own = || self.open(self.as_user(USER, &self.shop));
        let user = || self.as_user(USER, ringmark);
        let seen = match case {
            "your own process" => self.look(user(), &own()),
            "a program that the command starts" => self.started(),
            "another user's process" => {
                self.look(user(), &self.open(self.as_user(OTHER, &self.shop)))
            }
            "a process that became yours without `exec`" => {
                self.look(user(), &self.open(self.fixture.command(&self.changed)))
            }
            "a process in a user namespace of yours" => self.in_user_namespace()?,
            "any, inside a filter such as Docker's" => {
                let mut command = self.as_user(USER, &self.filtered);
                command.arg("container").arg(ringmark);
                self.look(command, &own())
            }
            "a process under such a filter" => {
                let mut command = self.as_user(USER, &self.filtered);
                command.arg("container").arg(&self.shop);
                self.look(user(), &self.open(command))
            }
            "your own process, on Debian or Ubuntu" => {
                let mut command = self.as_user(USER, &self.filtered);
                command.args(["fails", PERF, "13"]).arg(ringmark);
                self.look(command, &own())
            }
            "your own process, with CAP_PERFMON" => self.look(self.with_perfmon(), &own()),
            "another user's process, with CAP_PERFMON" => {
                let other = self.open(self.as_user(OTHER, &self.shop));
                self.look(self.with_perfmon(), &other)
            }
            "any process, as root" => self.look(self.fixture.command(ringmark), &own()),
            _ => panic!("no test of the case {case:?}"),
        };
        Some(seen)
    }

    fn started(&self) -> Seen {
        let mut command = self.as_user(USER, binary::path());
        command.args([
            "profile", "--for", "700ms", "--sample", "499", "--wide", "--",
        ]);
        let said = run(command.arg(&self.shop), LIMIT).expect("ringmark");
        let mut seen = Seen::of(&said.expect_code(0));
        // Standard output is the program's, so the tables stand before what is said of them.
        assert_eq!(seen.out, "");
        let at = seen.err.find("ringmark: ").unwrap_or(seen.err.len());
        (seen.out, seen.err) = (seen.err[..at].to_owned(), seen.err[at..].to_owned());
        seen
    }

    fn in_user_namespace(&self) -> Option<Seen> {
        let unshare = ["--user", "--map-root-user"];
        let mut probe = self.as_user(USER, Path::new("unshare"));
        let may = run(probe.args(unshare).arg("true"), LIMIT).expect("unshare");
        if may.code() != 0 {
            log_skip(&format!("user namespaces: {}", may.stderr_text().trim()));
            return None;
        }
        let mut command = self.as_user(USER, Path::new("unshare"));
        let target = self.open({
            command.args(unshare).arg(&self.shop);
            command
        });
        Some(self.look(self.as_user(USER, binary::path()), &target))
    }

    /// The command of a case in which a program that it starts is recorded, and what that program is started by.
    fn records(&self, case: &str) -> Option<(Command, Vec<&Path>)> {
        let ringmark = binary::path();
        let user = || self.as_user(USER, ringmark);
        let filtered = |words: &[&str]| {
            let mut command = self.as_user(USER, &self.filtered);
            command.args(words).arg(ringmark);
            command
        };
        let container = Path::new("container");
        Some(match case {
            "a program that the command starts" => (user(), vec![]),
            "any, inside a filter such as Docker's" => (filtered(&["container"]), vec![]),
            "a process under such a filter" => (user(), vec![&self.filtered, container]),
            "your own process, on Debian or Ubuntu" => (filtered(&["fails", PERF, "13"]), vec![]),
            "your own process, with CAP_PERFMON" => (self.with_perfmon(), vec![]),
            "any process, as root" => (self.fixture.command(ringmark), vec![]),
            _ => return None,
        })
    }

    /// What a recording has in a case: waits, functions that ran, the kernel's time, switches.
    fn recorded(
        &self,
        (mut command, by): (Command, Vec<&Path>),
        (uid, number): (u32, usize),
    ) -> [&'static str; 4] {
        let trace = self.fixture.path(&format!("{number}.rmk"));
        let sessions = self.fixture.path(&format!("{number}.sessions"));
        fs::create_dir(&sessions).expect("a folder");
        chown(&sessions, Some(uid), Some(uid)).expect("a folder of the user");
        command.env("RINGMARK_DIR", sessions);
        command.env("RINGMARK_LIB", library());
        command.args(["run", "--sched", "--waits", "--sample", "499"]);
        command
            .args(["--kind", "graph", "-o"])
            .arg(&trace)
            .arg("--");
        let said = run(command.args(by).arg(&self.traced), LIMIT).expect("ringmark");
        let said = said.expect_code(0).stderr_text();
        assert!(trace.exists(), "{said}");
        let dump = decode(&[trace]);
        let is_traced = |one: &&ringmark_decoder::Session| one.has_waits();
        let session = dump.sessions.iter().find(is_traced).expect("waits");
        let waits = session.seen_waits();
        let waits_for = |text: &str| {
            let mut waits = waits.iter();
            waits.any(|(.., found)| String::from_utf8_lossy(found).contains(text))
        };
        let samples = session.samples();
        let mut names = samples.iter().flat_map(|sample| sample.stack.functions());
        let runs = names.any(|name| name == b"knead");
        let [no_samples, no_switches] = ["--sample: which functions", "--sched: what threads"]
            .map(|words| said.contains(words));
        [
            match waits_for("mutex of clerk[") && waits_for("ask_bank") {
                true => "all",
                false if said.contains("--waits: which calls") => "only how",
                false => "unlike the guide",
            },
            match (runs, no_samples) {
                (true, false) => "yes",
                (false, true) => "no",
                _ => "unlike the guide",
            },
            match (session.has_samples(), session.has_kernel_samples()) {
                (false, _) => "no",
                (true, false) => "how much",
                (true, true) => "whose",
            },
            match (session.has_switches(), no_switches) {
                (true, false) => "all",
                (false, true) => "none",
                _ => "unlike the guide",
            },
        ]
    }

    /// `ringmark` as a user who has CAP_PERFMON.
    fn with_perfmon(&self) -> Command {
        let mut command = self.fixture.command("capsh");
        let id = USER.to_string();
        command.args(["--keep=1", &format!("--gid={id}"), &format!("--uid={id}")]);
        command.args(["--inh=cap_perfmon", "--addamb=cap_perfmon", "--", "-c"]);
        command.args(["exec \"$0\" \"$@\"", &binary::path().display().to_string()]);
        command
    }
}

/// What a profile shows.
#[derive(Debug)]
struct Seen {
    out: String,
    err: String,
}

impl Seen {
    fn of(said: &Finished) -> Self {
        Self {
            out: said.stdout_text(),
            err: said.stderr_text(),
        }
    }

    /// The lines of the table whose head begins so.
    fn table(&self, head: &str) -> Vec<&str> {
        let lines = self.out.lines().map(str::trim_start);
        let below = lines.skip_while(|line| !line.starts_with(head)).skip(1);
        below.take_while(|line| !line.is_empty()).collect()
    }

    fn has(&self, table: &str, texts: &[&str]) -> bool {
        let rows = self.table(table);
        let mut rows = rows.iter();
        rows.any(|row| texts.iter().all(|text| row.contains(text)))
    }

    fn waits(&self) -> &'static str {
        let knows = self.has("WAITED", &["mutex of clerk[", "sell < seller"])
            && self.has("WAITED", &["read pipe:[", "ask_bank < close_day < clerk"]);
        let knows_how = self.has("WAITED", &["may not be seen (sleeps)"]);
        let said = "files, locks and stacks of waits are not known";
        match (knows, knows_how) {
            (true, false) => "all",
            (false, true) if self.err.contains(said) => "only how",
            _ => "unlike the guide",
        }
    }

    fn functions(&self) -> &'static str {
        let runs = |name: &str| {
            let rows = self.table("SELF");
            let mut rows = rows.iter();
            rows.any(|row| !row.starts_with('-') && row.contains(&format!(" {name}")))
        };
        let [is_refused, is_nameless] = [
            "functions that run are not known",
            "functions have no names",
        ]
        .map(|said| self.err.contains(said));
        match (runs("knead "), runs("code without a file")) {
            (true, false) if !is_refused && !is_nameless => "yes",
            (false, true) if !is_refused && is_nameless => "without names",
            (false, false) if is_refused => "no",
            _ => "unlike the guide",
        }
    }

    fn kernel(&self) -> &'static str {
        match self.functions() {
            "no" => "no",
            _ if self.err.contains("[kernel] is what the kernel ran") => "how much",
            _ => "whose",
        }
    }

    /// Whether waits and preemptions of threads are counted.
    fn switches(&self) -> &'static str {
        let mut heads = self.out.lines().map(str::trim_start);
        let head = heads.find(|line| line.starts_with("RUNNING"));
        match head.is_some_and(|head| head.contains("PREEMPTED")) {
            true => "all",
            false => "none",
        }
    }

    /// It names the process, and has times of each of its threads, the one that runs all the time first.
    fn check_threads(&self, case: &str) {
        let rows = self.table("RUNNING");
        assert_eq!(rows.len(), 4, "{case}: {self:?}");
        assert!(rows[0].ends_with("  baker"), "{case}: {self:?}");
        assert!(!rows[0].starts_with('-'), "{case}: {self:?}");
        assert!(self.out.starts_with("shop"), "{case}: {self:?}");
    }
}

/// The rows of the guide's table: the case, and what is seen.
fn rows() -> Vec<Vec<String>> {
    let page = workspace_root().join("docs/src/slow.md");
    let page = fs::read_to_string(page).expect("the guide");
    let rows = page
        .lines()
        .skip_while(|line| !line.starts_with("| you look at |"))
        .skip(2)
        .take_while(|line| line.starts_with('|'));
    let cells = |row: &str| -> Vec<String> {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

#[test]
fn what_is_seen_is_what_the_guide_says() {
    if !require_tools(&["gcc", "setpriv", "capsh", "unshare"]) {
        return;
    }
    if !geteuid().is_root() {
        log_skip("who may look at what: needs root, to be several users");
        return;
    }
    let stage = Stage::new("profile-allowed");
    let rows = rows();
    assert_eq!(rows.len(), 11, "{rows:?}");
    for row in rows {
        let case = &row[0];
        let Some(seen) = stage.seen(case) else {
            continue;
        };
        let found = [
            seen.waits(),
            seen.functions(),
            seen.kernel(),
            seen.switches(),
        ];
        println!("{case}: {found:?}\n{}", seen.err);
        assert_eq!(found, row[1..], "{case}: {}\n{}", seen.out, seen.err);
        seen.check_threads(case);
    }
}

/// A recording has of a program what a profile shows of it.
#[test]
fn what_is_recorded_is_what_the_guide_says() {
    if !require_tools(&["gcc", "setpriv", "capsh"]) {
        return;
    }
    if !geteuid().is_root() {
        log_skip("who may record what: needs root, to be several users");
        return;
    }
    let stage = Stage::new("profile-recorded");
    let everyone = fs::Permissions::from_mode(0o777);
    fs::set_permissions(stage.fixture.path("."), everyone).expect("our folder");
    let mut cases = 0;
    for (number, row) in rows().iter().enumerate() {
        if let Some(case) = stage.records(&row[0]) {
            cases += 1;
            let uid = if row[0].contains("root") { 0 } else { USER };
            let found = stage.recorded(case, (uid, number));
            assert_eq!(found, row[1..], "{}", row[0]);
        }
    }
    assert_eq!(cases, 6);
}

/// Few descriptors: what is left out is counted, and the rest is whole.
#[test]
fn with_few_descriptors() {
    if !require_tools(&["gcc", "prlimit"]) {
        return;
    }
    let stage = Stage::new("profile-descriptors");
    let shop = stage.open(stage.fixture.command(&stage.shop));
    // Room for the files of a look, for four threads, and for few events of the kernel.
    for (limit, said) in [
        ("40", "are not known: there are not enough descriptors"),
        (
            "29",
            "in none of these times: there are not enough descriptors",
        ),
    ] {
        let mut command = stage.fixture.command("prlimit");
        command.arg(format!("--nofile={limit}:{limit}"));
        command.arg(binary::path());
        let seen = stage.look(command, &shop);
        println!("{limit}: {}\n{}", seen.out, seen.err);
        assert!(seen.err.contains(said), "{limit}: {seen:?}");
        assert!(seen.out.starts_with("shop["), "{seen:?}");
        assert!(!seen.err.contains("has ended"), "{seen:?}");
    }
}
