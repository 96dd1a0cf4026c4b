//! What tools say when a program has ended: beside a watcher, or with only the ring file left.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringmark_tests::fixture::{Fixture, SOON, wait_until_mapped};
use ringmark_tests::process::{POLLS, SLEEPS};
use ringmark_tests::{Running, ringmark, run, wait_until};
use rustix::process::Signal;

use super::{PROGRAM, WAYS, exe, program};

/// How a process is watched while it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Watcher {
    /// By its parent, `ringmark run`.
    Run,
    /// By its parent, `ringmark record -- CMD`.
    Command,
    /// By a recorder beside it.
    All,
    /// By `record --all --on-death`.
    OnDeath,
}

const WATCHERS: [Watcher; 4] = [
    Watcher::Run,
    Watcher::Command,
    Watcher::All,
    Watcher::OnDeath,
];

const UNTOLD: &str = "ended: not known, no status on this kernel";
const UNKNOWN: &str = "ended: not known, it was gone before it was looked at";
const PANICKED: &str = "ways_to_end.rs:";

/// `ppoll`, as [`POLLS`].
const PPOLLS: &str = "271 ";

/// What the watcher must say, `None`: nothing. Without `told` only the parent and the ring file
/// know of it.
fn words(way: &str, told: bool) -> Option<&'static str> {
    match way {
        "return-0" | "caught" | "close-return-0" => None,
        "return-2" => Some("exit status 2"),
        "exit-1" => Some("exit status 1"),
        "panic" => Some("the pool is empty (exit status 101)"),
        _ if !told => Some(UNTOLD),
        "_exit-0" => None,
        "abort" | "overflow" => Some("ended by SIGABRT"),
        "segv" | "close-segv" => Some("ended by SIGSEGV"),
        "kill" => Some("ended by SIGKILL"),
        "panic-abort" => Some("ended by SIGABRT, after a panic of panics_abort at "),
        _ => panic!("{way}"),
    }
}

/// What a watcher left of a program.
struct Seen {
    /// What it said, and what `cat` says of its trace files.
    said: Vec<String>,
    /// The trace files.
    files: Vec<PathBuf>,
}

fn tool(fixture: &Fixture, told: bool, arguments: &[&str]) -> Command {
    let mut command = fixture.command(ringmark().get_program());
    command.args(arguments);
    if !told {
        command.env("RINGMARK_ASK_ENDS", "off");
    }
    command
}

/// A program that ends beside a watcher.
struct Case<'a> {
    watcher: Watcher,
    /// The command and its arguments; `wait` may follow.
    program: &'a [&'a str],
    /// Whether the kernel is asked how processes of others ended.
    told: bool,
    /// Its exit code, as a shell gives it.
    code: i32,
}

/// Has the program end beside its watcher.
fn watched(fixture: &Fixture, case: &Case<'_>) -> Seen {
    let file = fixture.path("a.rmk").display().to_string();
    let deaths = fixture.path("deaths");
    let deaths_text = deaths.display().to_string();
    fs::create_dir_all(&deaths).unwrap();
    let &Case {
        watcher,
        told,
        code,
        ..
    } = case;
    let said = match watcher {
        Watcher::Run | Watcher::Command => {
            let verb = if watcher == Watcher::Run {
                "run"
            } else {
                "record"
            };
            let mut command = tool(fixture, told, &[verb, "-o", &file, "--"]);
            let done = run(command.args(case.program), SOON).unwrap();
            done.expect_code(code).stderr_text()
        }
        Watcher::All => beside(fixture, &["record", "--all", "-o", &file], case),
        Watcher::OnDeath => {
            let all = ["record", "--all", "--on-death", &deaths_text];
            beside(fixture, &all, case)
        }
    };
    let mut files: Vec<_> = fs::read_dir(&deaths)
        .unwrap()
        .flatten()
        .map(|e| e.path())
        .collect();
    if Path::new(&file).exists() {
        files.push(file.into());
    }
    let shown = files.iter().map(|file| {
        let arguments = ["cat", &file.display().to_string()];
        run(&mut tool(fixture, told, &arguments), SOON)
            .unwrap()
            .stderr_text()
    });
    let mut all = vec![said];
    all.extend(shown);
    Seen { said: all, files }
}

/// Starts a watcher of all sessions, then the program, which ends once it is watched.
fn beside(fixture: &Fixture, watch: &[&str], case: &Case<'_>) -> String {
    fs::create_dir_all(fixture.sessions()).unwrap();
    fs::set_permissions(fixture.sessions(), fs::Permissions::from_mode(0o700)).unwrap();
    let watch = Running::start(&mut tool(fixture, case.told, watch)).unwrap();
    let mut command = fixture.program(case.program[0], "mode=overwrite");
    command.args(&case.program[1..]).arg("wait");
    let mut program = Running::start(command.stdin(Stdio::piped())).unwrap();
    let ring_file = fixture.ring_file();
    wait_until_mapped(&watch, &ring_file);
    // It has opened the session when it waits again.
    watch.wait_until_in(&[POLLS, PPOLLS, SLEEPS[0], SLEEPS[1]]);
    drop(program.child().stdin.take());
    let _ = program.finish(SOON).expect_code(case.code);
    // It lets the session go when it has written what it writes.
    let inode_is_mapped = || {
        let maps = fs::read_to_string(format!("/proc/{}/maps", watch.id())).unwrap();
        maps.contains(".ring")
    };
    wait_until(SOON, "the session to be let go", || {
        (!inode_is_mapped()).then_some(())
    });
    watch.signal(Signal::INT).unwrap();
    watch.finish(SOON).stderr_text()
}

/// That what was said is `expected`, and no end is told of where nothing is to be said.
fn expect_said(seen: &Seen, expected: Option<&str>, what: &str) {
    for said in &seen.said {
        match expected {
            Some(words) => assert!(said.contains(words), "{what}: {words:?} in {said}"),
            None => {
                let tells = ["ended by", "exit status", "not known", "panicked"];
                let lines = said.lines().filter(|line| line.contains("ways_to_end["));
                let told: Vec<_> = lines
                    .filter(|line| tells.iter().any(|t| line.contains(t)))
                    .collect();
                assert!(told.is_empty(), "{what}: {told:?}");
            }
        }
    }
}

/// Every way to end beside every watcher, on this kernel and as on one that tells only parents.
#[test]
fn every_watcher_says_how_a_program_ended_or_that_it_is_not_known() {
    for watcher in WATCHERS {
        for told in [true, false] {
            let is_parent = matches!(watcher, Watcher::Run | Watcher::Command);
            for (way, code, _) in WAYS {
                if is_parent && way.starts_with("close") {
                    // Its recording ends with the session: the end of the program comes later.
                    continue;
                }
                let what = format!("{way} beside {watcher:?}, kernel asked: {told}");
                let fixture = Fixture::new("watched");
                let program = &["prlimit", "--core=0", exe(way), way];
                let case = Case {
                    watcher,
                    program,
                    told,
                    code,
                };
                let seen = watched(&fixture, &case);
                let expected = words(way, told || is_parent);
                match (watcher, expected) {
                    (Watcher::OnDeath, None) => {
                        assert_eq!(seen.files, Vec::<PathBuf>::new(), "{what}");
                    }
                    _ => assert_eq!(seen.files.len(), 1, "{what}: {:?}", seen.files),
                }
                if way == "close-segv" && watcher == Watcher::All {
                    continue;
                }
                expect_said(&seen, expected, &what);
                if way == "panic" {
                    assert!(
                        seen.said.iter().any(|said| said.contains(PANICKED)),
                        "{what}"
                    );
                }
            }
        }
    }
}

/// A control group with little memory, removed when dropped.
struct MemoryGroup(PathBuf);

impl MemoryGroup {
    /// `None`: this machine does not let us make one that counts kills.
    fn make() -> Option<Self> {
        let name = format!("ringmark-test-{}", std::process::id());
        let versions = [
            (
                "/sys/fs/cgroup/memory",
                "memory.limit_in_bytes",
                "memory.oom_control",
            ),
            ("/sys/fs/cgroup", "memory.max", "memory.events"),
        ];
        versions.iter().find_map(|(base, limit, events)| {
            let group = Self(Path::new(base).join(&name));
            fs::create_dir(&group.0).ok()?;
            let counts = fs::read_to_string(group.0.join(events)).unwrap_or_default();
            let is_limited = fs::write(group.0.join(limit), "64M").is_ok();
            // Without it the kernel would swap on.
            let _ = fs::write(group.0.join("memory.swap.max"), "0");
            let _ = fs::write(group.0.join("memory.memsw.limit_in_bytes"), "64M");
            (is_limited && counts.contains("oom_kill ")).then_some(group)
        })
    }
}

impl Drop for MemoryGroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

/// A kill for lack of memory is told from another one by what the program's control group counts.
#[test]
fn a_kill_for_lack_of_memory_is_told_as_such() {
    let Some(group) = MemoryGroup::make() else {
        println!("skipped: no control group with a limit of memory can be made here");
        return;
    };
    let procs = group.0.join("cgroup.procs");
    let script = format!("echo $$ > {} && exec {PROGRAM} memory $1", procs.display());
    let program = ["sh", "-c", &script, "sh"];
    let words = "ended by SIGKILL, its control group was out of memory";
    for watcher in WATCHERS {
        for told in [true, false] {
            let is_parent = matches!(watcher, Watcher::Run | Watcher::Command);
            let fixture = Fixture::new("memory");
            let case = Case {
                watcher,
                program: &program,
                told,
                code: 137,
            };
            let seen = watched(&fixture, &case);
            let what = format!("memory beside {watcher:?}, kernel asked: {told}");
            let expected = if told || is_parent { words } else { UNTOLD };
            expect_said(&seen, Some(expected), &what);
        }
    }
    // No watcher: the ring file stays, and what is left of it cannot say why.
    let fixture = Fixture::new("memory-alone");
    let mut command = fixture.program(program[0], "mode=overwrite");
    let _ = run(command.args(&program[1..]), SOON)
        .unwrap()
        .expect_code(137);
    assert_eq!(fixture.ring_files().len(), 1);
    let list = run(&mut tool(&fixture, true, &["list", "-v"]), SOON).unwrap();
    let list = list.expect_code(0).stdout_text();
    assert!(list.contains(UNKNOWN), "{list}");
}

/// Only the ring file is left: what is in it is said, and the rest as not known.
#[test]
fn a_ring_file_alone_says_the_status_or_that_it_is_not_known() {
    for (way, code, is_clean) in WAYS {
        let fixture = Fixture::new("alone");
        let program = Running::start(&mut program(&fixture, "mode=overwrite,keep=always", way));
        let program = program.unwrap();
        let pid = program.id().to_string();
        let _ = program.finish(SOON).expect_code(code);
        let cat = run(&mut tool(&fixture, true, &["cat", "-p", &pid]), SOON).unwrap();
        let list = run(&mut tool(&fixture, true, &["list", "-v"]), SOON).unwrap();
        let list = list.expect_code(0).stdout_text();
        let expected = match (words(way, false), is_clean) {
            (Some(UNTOLD), _) => Some(UNKNOWN),
            (words, _) => words,
        };
        let seen = Seen {
            said: vec![cat.stderr_text()],
            files: Vec::new(),
        };
        expect_said(&seen, expected, way);
        let ending = match expected {
            Some(UNKNOWN) => UNKNOWN.to_owned(),
            _ => format!("exit status {code}"),
        };
        let line = format!("{pid}: {ending}");
        assert!(list.lines().any(|listed| listed == line), "{way}: {list}");
    }
}

/// Files of the dead are named by process and end, and `--ends all` leaves one for each end.
#[test]
fn files_of_the_dead_are_named_by_how_they_ended() {
    for (way, code, ends, name) in [
        ("return-0", 0, "all", Some("exit-0")),
        ("return-0", 0, "crash", None),
        ("exit-1", 1, "all", Some("exit-1")),
        ("exit-1", 1, "crash", Some("exit-1")),
        ("segv", 139, "crash", Some("SIGSEGV")),
        ("close-segv", 139, "crash", Some("SIGSEGV")),
    ] {
        let fixture = Fixture::new("named");
        let deaths = fixture.path("deaths");
        fs::create_dir_all(&deaths).unwrap();
        let watch = [
            "record",
            "--all",
            "--on-death",
            &deaths.display().to_string(),
            "--ends",
            ends,
        ];
        let case = Case {
            watcher: Watcher::OnDeath,
            program: &["prlimit", "--core=0", exe(way), way],
            told: true,
            code,
        };
        let _ = beside(&fixture, &watch, &case);
        let files = fs::read_dir(&deaths).unwrap().flatten();
        let names: Vec<_> = files
            .map(|e| e.file_name().into_string().unwrap())
            .collect();
        match name {
            None => assert_eq!(names, Vec::<String>::new(), "{way}, {ends}"),
            Some(end) => {
                let [found] = names.as_slice() else {
                    panic!("{way}, {ends}: {names:?}")
                };
                let is_named =
                    found.starts_with("ways_to_end-") && found.ends_with(&format!("-{end}.rmk"));
                assert!(is_named, "{way}, {ends}: {found}");
            }
        }
    }
}

/// A panic that is caught, and an event of a name, leave a file while the process goes on.
#[test]
fn a_caught_panic_and_a_named_event_are_kept() {
    for (words, name) in [
        (&["--ends", "panic"][..], "panic"),
        (&["--on", "request.*"], "request.failed"),
    ] {
        let fixture = Fixture::new("named-event");
        let deaths = fixture.path("deaths");
        fs::create_dir_all(&deaths).unwrap();
        fs::create_dir_all(fixture.sessions()).unwrap();
        fs::set_permissions(fixture.sessions(), fs::Permissions::from_mode(0o700)).unwrap();
        let deaths_text = deaths.display().to_string();
        let watch = ["record", "--all", "--on-death", &deaths_text];
        let mut watch = tool(&fixture, true, &[&watch[..], words].concat());
        let watch = Running::start(&mut watch).unwrap();
        watch.wait_until_in(&[POLLS, PPOLLS, SLEEPS[0], SLEEPS[1]]);
        let mut program = fixture.program(exe("caught"), "mode=overwrite");
        program.arg("caught-goes-on").stdin(Stdio::piped());
        let mut program = Running::start(&mut program).unwrap();
        let end = format!("-{}-{name}.rmk", program.id());
        let shown = wait_until(SOON, "a whole file", || {
            let files = fs::read_dir(&deaths).unwrap().flatten().map(|e| e.path());
            let mut files = files.map(|file| file.display().to_string());
            let file = files.find(|file| file.ends_with(&end))?;
            let shown = run(&mut tool(&fixture, true, &["cat", &file]), SOON).unwrap();
            (shown.code() == 0).then(|| shown.stdout_text())
        });
        assert!(shown.contains("a request failed"), "{shown}");
        assert!(shown.contains("request.failed"), "{shown}");
        // It was no death.
        assert!(program.child().try_wait().unwrap().is_none(), "{name}");
        drop(program.kill().unwrap());
        watch.signal(Signal::INT).unwrap();
        let _ = watch.finish(SOON).expect_code(0);
    }
}
