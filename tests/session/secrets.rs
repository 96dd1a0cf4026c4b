//! Promise: no argument is recorded that was not declared, redaction happens in the program, and what
//! a session recorded is gone with its file.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::random::Random;
use ringmark_tests::{Running, binary, log_skip, require_tools, run, wait_until};
use rustix::process::geteuid;

const KEEPER: &str = ringmark_tests::program!("keeper");
const EMIT: &str = ringmark_tests::program!("emit");
const RINGMARK: &str = "ring=64K,page=4K,session=1M";
const NOBODY: u32 = 65534;

/// A text that stands nowhere else.
fn canary(random: &mut Random) -> String {
    (0..32)
        .map(|_| char::from(b'a' + random.below(26) as u8))
        .collect()
}

fn hits(bytes: &[u8], canary: &str) -> usize {
    // A part of it is enough: records are made of words.
    let parts = canary.as_bytes().chunks(8);
    parts
        .map(|part| bytes.windows(8).filter(|found| *found == part).count())
        .sum()
}

/// A program that knows a secret and shows another text, in the middle of its life.
struct Keeper {
    program: Running,
    secret: String,
    shown: String,
}

impl Keeper {
    fn start(command: &mut Command, random: &mut Random) -> Self {
        let (secret, shown) = (canary(random), canary(random));
        command
            .env("RINGMARK_FILTER", "debug")
            .env("SECRET", &secret);
        let mut program = Running::start(command.stdin(Stdio::piped())).unwrap();
        let lines = format!("{secret}\n{shown}\n");
        let input = program.child().stdin.as_mut().unwrap();
        input.write_all(lines.as_bytes()).unwrap();
        Self {
            program,
            secret,
            shown,
        }
    }

    /// The secret is not there; what was declared is, if `shows`.
    #[track_caller]
    fn expect(&self, what: &str, bytes: &[u8], shows: bool) -> usize {
        assert_eq!(hits(bytes, &self.secret), 0, "{what}: the secret");
        assert_eq!(
            hits(bytes, &self.shown) > 0,
            shows,
            "{what}: the declared text"
        );
        bytes.len()
    }

    fn end(&mut self) {
        drop(self.program.child().stdin.take());
        wait_until(SOON, "its end", || {
            self.program
                .child()
                .try_wait()
                .unwrap()
                .map(|status| assert!(status.success()))
        });
    }
}

fn outputs(fixture: &Fixture, arguments: &str) -> Vec<u8> {
    let mut command = fixture.command(binary::path());
    command.args(arguments.split_ascii_whitespace());
    let done = run(command.current_dir(fixture.path(".")), SOON).unwrap();
    let done = done.expect_code(0);
    [done.stdout, done.stderr].concat()
}

#[test]
fn what_was_not_declared_is_nowhere() {
    let mut random = Random::seeded();
    let mut searched = 0;
    for mode in ["discard", "overwrite"] {
        let fixture = Fixture::new("secret");
        let mut command = fixture.program(KEEPER, &format!("mode={mode},{RINGMARK},keep=always"));
        let mut keeper = Keeper::start(&mut command, &mut random);
        let pid = keeper.program.id();
        let ring_file = fixture.ring_file();
        wait_until(SOON, "what it shows", || {
            (hits(&fs::read(&ring_file).unwrap(), &keeper.shown) > 100).then_some(())
        });
        for (arguments, shows) in [
            (format!("cat -p {pid}"), true),
            (format!("cat --json -p {pid}"), true),
            (format!("events -p {pid}"), false),
            (format!("events --json -p {pid}"), false),
            (format!("list -v --interval 10ms -p {pid}"), true),
            ("list".to_owned(), false),
            ("list --json".to_owned(), false),
            ("snapshot -o live.rmk".to_owned(), false),
        ] {
            searched += keeper.expect(&arguments, &outputs(&fixture, &arguments), shows);
        }
        keeper.end();
        drop(outputs(&fixture, "snapshot -o dead.rmk"));
        for arguments in [
            "cat dead.rmk",
            "cat --json live.rmk",
            "verify dead.rmk",
            "list -v dead.rmk",
            "report dead.rmk",
        ] {
            let shows = arguments.starts_with("cat");
            searched += keeper.expect(arguments, &outputs(&fixture, arguments), shows);
        }
        for path in [
            ring_file,
            fixture.path("live.rmk"),
            fixture.path("dead.rmk"),
        ] {
            searched += keeper.expect(&path.to_string_lossy(), &fs::read(&path).unwrap(), true);
        }
        searched += recordings(&fixture, mode, &mut random);
    }
    println!("0 hits of the secrets in {searched} bytes");
}

/// The same through `record -- CMD`, compressed and not.
fn recordings(fixture: &Fixture, mode: &str, random: &mut Random) -> usize {
    let mut searched = 0;
    for compress in ["", "--compress lz4", "--compress delta"] {
        let mut command = recorded(fixture, mode, compress);
        let mut keeper = Keeper::start(&mut command, random);
        keeper.end();
        let dump = fs::read(fixture.path("run.rmk")).unwrap();
        assert_eq!(hits(&dump, &keeper.secret), 0, "{mode} {compress}");
        let lines = outputs(fixture, "cat run.rmk");
        searched += dump.len() + keeper.expect(compress, &lines, true);
    }
    searched
}

/// The keeper, recorded from start to end.
fn recorded(fixture: &Fixture, mode: &str, compress: &str) -> Command {
    let mut command = fixture.command(binary::path());
    command.env("RINGMARK", format!("mode={mode},{RINGMARK}"));
    command.args(["record", "-o"]).arg(fixture.path("run.rmk"));
    command.args(compress.split_ascii_whitespace());
    command.args(["--", KEEPER]);
    command
}

/// Everything in a directory, file by file.
fn contents(dir: &Path) -> Vec<u8> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .flat_map(|entry| fs::read(entry.path()).unwrap_or_default())
        .collect()
}

#[test]
fn a_session_without_a_file_leaves_nothing() {
    let mut random = Random::seeded();
    for options in ["memfd=on", "keep=never", "keep=crash"] {
        let fixture = Fixture::new("nothing");
        let mut command = fixture.program(KEEPER, &format!("mode=overwrite,{RINGMARK},{options}"));
        let mut keeper = Keeper::start(&mut command, &mut random);
        let pid = keeper.program.id();
        wait_until(SOON, "what it shows", || {
            let mut command = fixture.command(binary::path());
            let done = run(command.args(["cat", "-p", &pid.to_string()]), SOON).unwrap();
            (hits(&done.stdout, &keeper.shown) > 0).then_some(())
        });
        let living = contents(&fixture.sessions());
        assert_eq!(
            hits(&living, &keeper.shown) > 0,
            options != "memfd=on",
            "{options}"
        );
        keeper.end();
        assert_eq!(contents(&fixture.sessions()), b"", "{options}");
    }
}

#[test]
fn what_an_ended_session_held_is_in_no_later_one() {
    if !require_tools(&["setpriv"]) {
        return;
    }
    assert!(geteuid().is_root(), "needs root: to be two users");
    let mut random = Random::seeded();
    for round in 0..5 {
        let fixture = Fixture::new("later");
        let mut command = fixture.program(KEEPER, &format!("mode=overwrite,{RINGMARK},keep=never"));
        let mut keeper = Keeper::start(&mut command, &mut random);
        let ring_file = fixture.ring_file();
        wait_until(SOON, "what it shows", || {
            (hits(&fs::read(&ring_file).unwrap(), &keeper.shown) > 0).then_some(())
        });
        keeper.end();
        assert!(!ring_file.exists());
        // Another user's session gets the memory next.
        let other = fixture.path("other");
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::chown(&other, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let mut next = fixture.command("setpriv");
        next.args([
            "--reuid",
            "65534",
            "--regid",
            "65534",
            "--clear-groups",
            EMIT,
            "4",
            "1",
        ]);
        next.env("RINGMARK", "mode=overwrite,keep=always")
            .env("RINGMARK_DIR", &other);
        let _ = run(&mut next, SOON).unwrap().expect_code(0);
        let found = contents(&other);
        assert!(found.len() > 1 << 20, "a session");
        assert_eq!(hits(&found, &keeper.shown), 0, "round {round}");
    }
}

/// A program with the setuid bit of root, run by nobody.
fn with_rights_of_root(fixture: &Fixture, program: &str) -> Command {
    use std::os::unix::fs::PermissionsExt;
    let copy = fixture.path("setuid");
    fs::copy(program, &copy).unwrap();
    fs::set_permissions(&copy, PermissionsExt::from_mode(0o4755)).unwrap();
    let mut command = fixture.command("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.arg(copy);
    command
}

#[test]
fn a_program_with_more_rights_does_not_obey_its_caller() {
    use std::os::unix::fs::PermissionsExt;
    if !require_tools(&["setpriv", "id"]) {
        return;
    }
    assert!(geteuid().is_root(), "needs root: to be two users");
    let fixture = Fixture::new("setuid");
    fs::set_permissions(fixture.path(""), PermissionsExt::from_mode(0o755)).unwrap();
    let who = run(&mut with_rights_of_root(&fixture, "/usr/bin/id"), SOON).unwrap();
    if !who.stdout_text().contains("euid=0") {
        log_skip("a_program_with_more_rights_does_not_obey_its_caller: no setuid bits here");
        return;
    }
    // Root's own directory, with what a start clears away.
    let of_root = fixture.path("of-root");
    fs::create_dir(&of_root).unwrap();
    fs::set_permissions(&of_root, PermissionsExt::from_mode(0o700)).unwrap();
    let left = of_root.join("99999999-data.stream");
    fs::write(&left, "what a streamer left").unwrap();
    let usual = Path::new("/dev/shm/ringmark-0");
    let was_there = usual.exists();
    for dir in [fixture.path("made-by-nobody"), of_root.clone()] {
        let mut command = with_rights_of_root(&fixture, EMIT);
        command.args(["0", "10"]);
        command.env("RINGMARK", "mode=discard,keep=always,session=64M");
        command.env("RINGMARK_DIR", &dir);
        command.env("RINGMARK_FILTER", "no level at all");
        command.env("RINGMARK_VERBOSE", "1");
        let done = run(&mut command, SOON).unwrap().expect_code(0);
        assert_eq!(done.stderr_text(), "");
    }
    assert!(!fixture.path("made-by-nobody").exists());
    assert!(left.exists(), "nothing is removed");
    assert_eq!(fs::read_dir(&of_root).unwrap().count(), 1);
    assert_eq!(usual.exists(), was_there);
}
