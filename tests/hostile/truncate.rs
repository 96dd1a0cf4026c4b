//! Promise: others may delete, punch or cut a ring file and fill its filesystem. With the guard, or
//! in a memfd, the program never notices; without it only two things end the program: a cut, and a
//! punch into a filesystem that is full. Every tool lives, names what was cut, and exits as it should.

#[path = "truncate/tools.rs"]
mod tools;

use std::fs::{self, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use ringmark_decoder::Dump;
use ringmark_format::Uuid;
use ringmark_reader::{Access, Session};
use ringmark_tests::delivery::Delivery;
use ringmark_tests::fixture::{Counters, Fixture, SOON, is_mapped, wait_until_mapped};
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::recording::decode;
use ringmark_tests::{Finished, Running, binary, require_tools, run, wait_until};
use rustix::process::{Signal, geteuid};

const EMIT: &str = ringmark_tests::program!("emit");
const RECORDER: &str = ringmark_tests::program!("recorder");
const OWN_SIGBUS: &str = ringmark_tests::program!("own_sigbus");
const SIZES: &str = "ring=64K,page=4K,session=1M";
const THREADS: u64 = 2;
const EVENTS: u64 = 150_000;
const SIGBUS: i32 = 7;
/// Events behind which a program that is held waits.
const HELD: u64 = 10_000;

/// A program that takes a good quarter of a second, and its ledger.
struct Traced {
    program: Running,
    counters: Counters,
    ring_file: PathBuf,
}

impl Traced {
    fn start(fixture: &Fixture, ringmark: &str, name: &str) -> Self {
        Self::start_with(fixture, ringmark, name, &[])
    }

    /// Waits behind its first events until it is let go on.
    fn held(fixture: &Fixture, ringmark: &str) -> Self {
        Self::start_with(fixture, ringmark, "counters", &[&format!("gate={HELD}")])
    }

    fn start_with(fixture: &Fixture, ringmark: &str, name: &str, more: &[&str]) -> Self {
        let counters = Counters::new(fixture.path(name));
        let before = fixture.ring_files();
        let mut command = fixture.program(EMIT, ringmark);
        let pace = ["burst=1000", "pause=2000"];
        command
            .args([THREADS.to_string(), EVENTS.to_string()])
            .args(pace)
            .args(more);
        let program = Running::start(command.arg(counters.argument())).unwrap();
        counters.wait_for(THREADS);
        let mut new = fixture.ring_files();
        new.retain(|path| !before.contains(path));
        let ring_file = match new.pop() {
            Some(path) => path,
            None => memfd_of(program.id()),
        };
        Self {
            program,
            counters,
            ring_file,
        }
    }

    /// It ended well, printed nothing, and every call of an event returned.
    #[track_caller]
    fn expect_right(self, what: &str) {
        let done = self.program.finish(SOON);
        let said = (done.code(), done.stdout_text(), done.stderr_text());
        assert_eq!(said, (0, String::new(), String::new()), "{what}");
        assert_eq!(
            self.counters.read(THREADS),
            [EVENTS; THREADS as usize],
            "{what}"
        );
    }
}

fn memfd_of(pid: u32) -> PathBuf {
    let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let is_it = |path: &PathBuf| {
        fs::read_link(path).is_ok_and(|to| to.to_string_lossy().contains("memfd:ringmark"))
    };
    fds.flatten()
        .map(|entry| entry.path())
        .find(is_it)
        .expect("a memfd")
}

fn set_len(path: &Path, bytes: u64) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(path)?.set_len(bytes)
}

fn modes() -> impl Iterator<Item = String> {
    ["discard", "overwrite"]
        .into_iter()
        .map(|mode| format!("mode={mode},{SIZES}"))
}

#[test]
fn a_cut_never_hurts_with_the_guard_or_a_memfd() {
    for mode in modes() {
        for cut in [0, 2, 256] {
            let fixture = Fixture::new("cut");
            let traced = Traced::held(&fixture, &format!("{mode},guard=on"));
            let bytes = fs::metadata(&traced.ring_file).unwrap().len();
            let left = bytes.checked_div(cut).unwrap_or(0) & !4095;
            let file = OpenOptions::new().write(true).open(&traced.ring_file);
            let file = file.unwrap();
            file.set_len(left).unwrap();
            traced.counters.go();
            // They write where nothing is now.
            traced.counters.wait_for_each(THREADS, HELD + EVENTS / 10);
            file.set_len(bytes).unwrap();
            traced.expect_right(&format!("{mode}: {left} of {bytes} bytes left"));
        }
        let fixture = Fixture::new("sealed");
        let traced = Traced::held(&fixture, &format!("{mode},memfd=on"));
        for bytes in [0, 4096, 64 << 20] {
            let error = set_len(&traced.ring_file, bytes).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EPERM), "{error}");
        }
        traced.counters.go();
        traced.expect_right("a memfd");
    }
}

#[test]
fn a_cut_ends_the_program_without_the_guard() {
    for mode in modes() {
        let fixture = Fixture::new("bare");
        let traced = Traced::held(&fixture, &mode);
        set_len(&traced.ring_file, 0).unwrap();
        traced.counters.go();
        let done = traced.program.finish(SOON);
        assert_eq!(
            done.status.signal(),
            Some(SIGBUS),
            "{mode}: as SECURITY.md says"
        );
    }
}

/// Punches the whole file, again and again for a while. It may have lost its name.
fn punch(file: &File, times: u32) {
    let bytes = file.metadata().unwrap().len().to_string();
    let path = format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd());
    for _ in 0..times {
        let mut punch = Command::new("fallocate");
        punch.args(["--punch-hole", "--offset", "0", "--length", &bytes]);
        let _ = run(punch.arg(&path), SOON).unwrap().expect_code(0);
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn deletion_and_punching_never_hurt() {
    if !require_tools(&["fallocate"]) {
        return;
    }
    for mode in modes() {
        for kind in ["guard=off", "guard=on", "memfd=on"] {
            let fixture = Fixture::new("gone");
            let traced = Traced::held(&fixture, &format!("{mode},{kind}"));
            let file = OpenOptions::new().write(true).open(&traced.ring_file);
            let file = file.unwrap();
            if kind != "memfd=on" {
                fs::remove_file(&traced.ring_file).unwrap();
            }
            punch(&file, 1);
            traced.counters.go();
            punch(&file, 9);
            traced.expect_right(kind);
        }
    }
}

/// Runs a program in a tmpfs of its own that is filled up while it writes, and its ring file
/// punched if `punched`. Returns the program's exit code as a shell sees it.
fn in_full_tmpfs(ringmark: &str, punched: bool) -> Finished {
    let fixture = Fixture::new("full");
    fs::create_dir(fixture.sessions()).unwrap();
    let counters = Counters::new(fixture.path("counters"));
    let punch = if punched {
        "kill -STOP $!
         fallocate --punch-hole --offset 0 --length $(stat -c %s $file) $file
         head -c 9000000 /dev/zero >> $RINGMARK_DIR/fill 2> /dev/null || :
         kill -CONT $!"
    } else {
        ":"
    };
    let script = format!(
        "mount -t tmpfs -o size=8m,mode=0700 ringmark-test $RINGMARK_DIR
         RINGMARK={ringmark} {EMIT} {THREADS} {EVENTS} gate=10000 burst=1000 pause=2000 {ledger} &
         file=$RINGMARK_DIR/$!-*.ring
         until ls $file > /dev/null 2>&1; do :; done
         file=$(echo $file)
         head -c 9000000 /dev/zero > $RINGMARK_DIR/fill 2> /dev/null || :
         {punch}
         {go}
         code=0; wait $! || code=$?
         exit $code",
        ledger = counters.argument(),
        go = counters.go_in_shell()
    );
    let mut command = fixture.command("unshare");
    command.args(["--mount", "sh", "-euc", &script]);
    let done = run(&mut command, 2 * SOON).unwrap();
    if done.code() == 0 {
        assert_eq!(counters.read(THREADS), [EVENTS; THREADS as usize]);
    }
    done
}

#[test]
fn a_full_filesystem_hurts_only_who_is_punched_without_the_guard() {
    if !require_tools(&["unshare", "mount", "fallocate"]) {
        return;
    }
    assert!(geteuid().is_root(), "needs root: to mount a small tmpfs");
    for mode in modes() {
        for (kind, punched, code) in [
            ("guard=off", false, 0),
            ("guard=on", false, 0),
            ("guard=on", true, 0),
            ("guard=off", true, 128 + SIGBUS),
        ] {
            let done = in_full_tmpfs(&format!("{mode},{kind}"), punched);
            let said = done.stderr_text();
            assert_eq!(
                done.code(),
                code,
                "{mode},{kind}, punched: {punched}: {said}"
            );
        }
    }
}

fn tool(fixture: &Fixture, arguments: &str) -> Command {
    let mut command = fixture.command(binary::path());
    command.args(arguments.split_ascii_whitespace());
    command.current_dir(fixture.path("."));
    command
}

#[test]
fn a_recorder_of_all_lets_the_cut_one_go_and_has_the_others_whole() {
    for mode in modes() {
        let fixture = Fixture::new("all");
        let discard = mode.contains("discard");
        let healthy = "mode=discard,ring=4M,page=4K,session=64M,keep=always";
        let whole = Traced::start(&fixture, healthy, "whole");
        let healthy = Session::open(&whole.ring_file, Access::Observe).unwrap();
        let healthy = healthy.uuid();
        // It must not end before the cut, however long the tools take to start.
        let cut = Traced::held(&fixture, &format!("{mode},guard=on,keep=always"));
        let (bytes, cut_file) = (
            fs::metadata(&cut.ring_file).unwrap().len(),
            cut.ring_file.clone(),
        );
        let mut command = tool(&fixture, "record --all -o all.rmk --status-file status");
        let all = Running::start(command.stdin(Stdio::null())).unwrap();
        wait_until(SOON, "the recorder of all", || {
            let written = fs::metadata(fixture.path("all.rmk")).map_or(0, |m| m.len());
            (written > 100 << 10).then_some(())
        });
        // One recorder consumes; the other one, of the library, only where that is allowed.
        let library = fixture.recorder(RECORDER, &fixture.path("one.rmk"), Some(&cut.ring_file));
        let follow = Running::start(&mut tool(
            &fixture,
            &format!("cat --follow -p {}", cut.program.id()),
        ));
        let (mut library, follow) = (library.unwrap(), follow.unwrap());
        wait_until_mapped(&follow, &cut.ring_file);
        wait_until_mapped_or_ended(&mut library, &cut.ring_file);
        set_len(&cut.ring_file, bytes / 2).unwrap();
        cut.counters.go();
        let library = library.finish(SOON);
        let follow = follow.finish(SOON).expect_code(3);
        for said in [library.stderr_text(), follow.stderr_text()] {
            let is_busy = discard && said.contains("already being recorded");
            assert!(is_busy || said.contains("truncated"), "{mode}: {said}");
        }
        cut.expect_right(&mode);
        whole.expect_right(&mode);
        wait_until(SOON, "it lets the cut one go", || {
            (!is_mapped(&all, &cut_file)).then_some(())
        });
        all.signal(Signal::INT).unwrap();
        let all = all.finish(SOON);
        let said = all.stderr_text();
        assert!(
            all.code() == 1 && said.contains("truncated"),
            "{}: {said}",
            all.code()
        );
        let status = fs::read_to_string(fixture.path("status")).unwrap();
        assert!(
            status.contains("truncated") && status.contains("\"complete\":false"),
            "{status}"
        );
        expect_whole(&decode(&[fixture.path("all.rmk")]), healthy);
    }
}

/// Waits for a recorder that a busy session may have refused.
fn wait_until_mapped_or_ended(recorder: &mut Running, ring_file: &Path) {
    wait_until(SOON, "a recorder", || {
        let status = recorder.child().try_wait();
        let has_ended = status.is_ok_and(|status| status.is_some());
        (has_ended || is_mapped(recorder, ring_file)).then_some(())
    });
}

/// A dump has one session of this uuid, with every event.
fn expect_whole(dump: &Dump, healthy: Uuid) {
    let sessions = dump.sessions.iter().map(|session| session.uuid);
    assert_eq!(sessions.filter(|uuid| *uuid == healthy).count(), 1);
    let account = Delivery::of(dump);
    let rings = account
        .rings
        .iter()
        .filter(|((uuid, _), _)| *uuid == healthy);
    let delivered: Vec<_> = rings.map(|(_, ring)| ring.delivered).collect();
    assert_eq!(delivered, [EVENTS; THREADS as usize], "the whole session");
}

#[test]
fn a_programs_own_faults_stay_its_own() {
    for guard in ["guard=on", "guard=off"] {
        for (how, expected) in [
            ("default", ""),
            ("plain", "faults=1 on_stack=true right_address=false\n"),
            ("siginfo", "faults=1 on_stack=true right_address=true\n"),
        ] {
            let fixture = Fixture::new("own");
            let ringmark = format!("mode=overwrite,{SIZES},control=off,{guard}");
            let mut command = fixture.program(OWN_SIGBUS, &ringmark);
            command.arg(how).stdin(Stdio::piped());
            let mut program = Running::start(&mut command).unwrap();
            let ring_file = fixture.ring_file();
            program.wait_until_in(&[READS_INPUT]);
            if guard == "guard=on" {
                set_len(&ring_file, 8192).unwrap();
            }
            drop(program.child().stdin.take());
            let done = program.finish(SOON);
            let out = done.stdout_text();
            let (first, rest) = out.split_once('\n').unwrap_or_default();
            assert_eq!(
                (first, rest),
                ("emitted, faults=0", expected),
                "{guard} {how}"
            );
            let killed = (how == "default").then_some(SIGBUS);
            assert_eq!(done.status.signal(), killed, "{guard} {how}");
        }
    }
}
