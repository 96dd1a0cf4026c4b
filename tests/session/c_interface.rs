//! Promise: C and C++ programs write the same records through `ringmark.h`, with the right values,
//! under both compilers, every warning and the sanitizers; what Rust promises holds for them, too.

use crate::c;
#[path = "c/can.rs"]
mod can;
#[path = "c/said.rs"]
pub(crate) mod said;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use c::{GCC, LIMIT, compile, compilers};
use can::can;
use ringmark_tests::binary::BUILT;
use ringmark_tests::fixture::{Counters, Fixture, SOON};
use ringmark_tests::{is_long, require_tools, ringmark, run, workspace_root};
use said::{events, lines};
use serde_json::Value;

const DISCARD: &str = "mode=discard,keep=always,ring=8M,session=64M";

/// What `values.c` records, up to its large ones.
const VALUES: &str = r#"
numbers event info {"a":255,"b":-128,"c":65535,"d":-32768,"e":4294967295,"f":-2147483648,"g":18446744073709551615,"h":-9223372036854775808}
packed event info {"a":1,"b":72623859790382856,"c":2,"d":3,"e":4,"no":false,"yes":true}
floats event info {"large":6.02214076e+23,"last":0.25,"small":-1.5}
texts event info {"between":77,"empty":"","first":"eight ch","last":"ä and more than eight","null":"","raw":"00ff"}
none event info {}
warned event warn {"code":9}
chatter event trace {"n":5}
sixteen event info {"f1":1,"f10":10,"f11":11,"f12":12,"f13":13,"f14":14,"f15":15,"f16":16,"f2":2,"f3":3,"f4":4,"f5":5,"f6":6,"f7":7,"f8":8,"f9":9}
queue.depth counter info {"value":6}
load counter info {"value":0.5}
query span info {"rows":7,"table":"inner"}
plain span info {}
query span info {"rows":9,"table":"outer"}
plain span info {}
raw event info {"first":11,"second":22}
raw event info {"first":33,"second":44}
raw event info {"first":55,"second":66}
"#;

/// All of them.
fn expected_values() -> Vec<String> {
    let hex: String = (0..3001_u32).map(|n| format!("{:02x}", n as u8)).collect();
    let large = [
        format!("large event info {{\"all\":\"{hex}\"}}"),
        "large event info {\"all\":\"0001020304\"}".to_owned(),
    ];
    VALUES
        .trim()
        .lines()
        .map(str::to_owned)
        .chain(large)
        .collect()
}

/// Sanitizers, and languages as flags.
const BUILDS: [(&str, &str); 3] = [
    ("", "-O2"),
    (
        "asan",
        "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all",
    ),
    ("tsan", "-O1 -fsanitize=thread"),
];

/// Sorts out the loss, which belongs between any two of them.
fn values_and_losses(all: Vec<String>) -> (Vec<String>, Vec<String>) {
    all.into_iter().partition(|line| !line.starts_with("lost "))
}

fn check_values(fixture: &Fixture, program: &Path, clock: &str, what: &str) {
    let mut command = fixture.command(program);
    command.arg(format!("{DISCARD},clock={clock}"));
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    assert_eq!(done.stderr_text(), "", "{what}");
    // One argument was evaluated: that of the event that was on.
    assert_eq!(done.stdout_text(), "evaluated 1\n", "{what}");
    let ring_file = fixture.ring_file();
    let (values, losses) = values_and_losses(lines(fixture, &ring_file));
    assert_eq!(values, expected_values(), "{what}");
    assert_eq!(losses, ["lost oversize 1"], "{what}");
    std::fs::remove_file(ring_file).expect("the ring file");
}

#[test]
fn values_are_right_under_every_compiler_and_sanitizer() {
    if !require_tools(&["gcc", "g++"]) {
        return;
    }
    let fixture = Fixture::new("c-values");
    for compiler in compilers() {
        for language in ["", "-x c++ "] {
            for (name, flags) in BUILDS {
                if name == "tsan" && !language.is_empty() && !is_long() {
                    continue;
                }
                let flags = format!("{language}{flags}");
                if !can(compiler, &flags) {
                    continue;
                }
                let what = format!("{} {flags}", compiler.c);
                let program = compile(&fixture, compiler, "values.c", &flags, "values");
                check_values(&fixture, &program, "tsc", &what);
                if name.is_empty() && language.is_empty() {
                    let clocks = ["monotonic", "coarse", "none"];
                    for clock in clocks {
                        check_values(&fixture, &program, clock, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn filters_know_types_before_they_happen() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("c-filter");
    let program = compile(&fixture, GCC, "values.c", "-O0", "values");
    let mut command = fixture.command(&program);
    command.args([DISCARD, "values=warn"]);
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    assert_eq!(done.stdout_text(), "evaluated 0\n");
    let ring_file = fixture.ring_file();
    assert_eq!(
        lines(&fixture, &ring_file),
        ["warned event warn {\"code\":9}"]
    );
    let mut command = fixture.command(&program);
    command.arg("mode=neither");
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(3);
    assert_eq!(
        done.stdout_text(),
        "off: mode: found \"neither\", expected discard or overwrite\n"
    );
}

#[test]
fn templates_exceptions_and_headers() {
    if !require_tools(&["g++"]) {
        return;
    }
    let fixture = Fixture::new("c-cxx");
    for compiler in compilers() {
        for flags in [
            "-O0",
            "-O2 -fPIE -pie",
            "-O2 -Wl,--gc-sections -ffunction-sections",
        ]
        .into_iter()
        .skip(usize::from(!is_long()))
        {
            let program = compile(&fixture, compiler, "cxx.cc cxx_second.cc", flags, "cxx");
            let mut command = fixture.program(&program.to_string_lossy(), DISCARD);
            let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
            let ring_file = fixture.ring_file();
            let mut expected: Vec<String> = Vec::new();
            for number in 0..4 {
                expected.push(format!("shared event info {{\"number\":{number}}}"));
                expected.push(format!("attempt span info {{\"number\":{number}}}"));
            }
            expected.push("seen event info {\"bytes\":32,\"what\":\"a string\"}".to_owned());
            for number in [10, 20, 21] {
                expected.push(format!("shared event info {{\"number\":{number}}}"));
            }
            assert_eq!(
                lines(&fixture, &ring_file),
                expected,
                "{} {flags}",
                compiler.cxx
            );
            std::fs::remove_file(ring_file).expect("the ring file");
        }
    }
}

/// What events of handlers are lost by: they came in a page's turn, or while their thread attached.
const OF_HANDLERS: [&str; 2] = ["nested", "no ring"];

/// A dump of `load.c` by thread: numbers of its own events and of its handlers', and the losses.
#[derive(Debug, Default)]
struct Books {
    work: BTreeMap<u64, Vec<u64>>,
    handled: u64,
    lost: BTreeMap<String, u64>,
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().and_then(|text| text.parse().ok());
    value.as_u64().or(text).expect("a number")
}

impl Books {
    /// Every event is whole.
    fn of(fixture: &Fixture, ring_file: &Path) -> Self {
        let mut books = Self::default();
        for event in events(fixture, ring_file) {
            if event["kind"] == "lost" {
                let cause = event["cause"].as_str().unwrap_or_default().to_owned();
                *books.lost.entry(cause).or_default() += number(&event["count"]);
                continue;
            }
            // How it ended and what was open then.
            if event["kind"] == "session_end" || event["kind"] == "open_span" {
                continue;
            }
            let args = &event["args"];
            let seq = match event["name"].as_str() {
                Some("held") => continue,
                _ => number(&args["seq"]),
            };
            assert_eq!(number(&args["check"]), !seq, "{event}");
            if event["name"] == "work" {
                let thread = number(&args["thread"]);
                books.work.entry(thread).or_default().push(seq);
            } else {
                books.handled += 1;
            }
        }
        books
    }

    /// Each of `threads` has all of its events, in order; only handlers' are lost.
    fn expect(&self, threads: &[u64], events: std::ops::Range<u64>, handled: u64, what: &str) {
        for thread in threads {
            let all: Vec<u64> = events.clone().collect();
            assert_eq!(self.work.get(thread), Some(&all), "{what}: thread {thread}");
        }
        assert_eq!(self.work.len(), threads.len(), "{what}");
        let lost: u64 = self.lost.values().sum();
        assert!(
            self.lost
                .keys()
                .all(|cause| OF_HANDLERS.contains(&cause.as_str())),
            "{what}: {:?}",
            self.lost
        );
        assert_eq!(self.handled + lost, handled, "{what}: lost {:?}", self.lost);
    }
}

/// Runs `load` and returns what it says its handlers emitted.
fn run_load(fixture: &Fixture, program: &Path, ringmark: &str, arguments: &str) -> u64 {
    let mut command = fixture.program(&program.to_string_lossy(), ringmark);
    command.args(arguments.split_whitespace());
    // The search for leaks stops threads, and says so when one comes or goes at that time.
    command.env("ASAN_OPTIONS", "detect_leaks=0");
    let done = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    assert_eq!(done.stderr_text(), "");
    let said = done.stdout_text();
    let handled = said.trim().strip_prefix("handled ").map(str::parse);
    handled.map_or(0, |number| number.expect("a number"))
}

#[test]
fn threads_and_their_handlers() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("c-threads");
    let events = if is_long() { 20_000 } else { 1000 };
    for compiler in compilers() {
        for (_, flags) in BUILDS.iter().filter(|(_, flags)| can(compiler, flags)) {
            let program = compile(&fixture, compiler, "load.c", flags, "load");
            let handled = run_load(&fixture, &program, DISCARD, &format!("threads 4 {events}"));
            let what = format!("{} {flags}", compiler.c);
            let ring_file = fixture.ring_file();
            let books = Books::of(&fixture, &ring_file);
            // Two in every sixteenth event, at least.
            assert!(handled >= 4 * 2 * (events / 16), "{what}: {handled}");
            books.expect(&[0, 1, 2, 3], 0..events, handled, &what);
            std::fs::remove_file(ring_file).expect("the ring file");
        }
    }
}

#[test]
fn a_handler_behind_every_instruction() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("c-steps");
    let (events, builds) = if is_long() { (1000, 2) } else { (15, 1) };
    let ringmark = "mode=discard,keep=always,page=4K,ring=16M,session=64M";
    for compiler in compilers() {
        for flags in ["-O2", "-O0"].into_iter().take(builds) {
            let program = compile(&fixture, compiler, "load.c", flags, "load");
            let handled = run_load(&fixture, &program, ringmark, &format!("steps {events}"));
            let what = format!("{} {flags}", compiler.c);
            let ring_file = fixture.ring_file();
            // The straight line alone has some forty instructions.
            assert!(handled > 30 * events, "{what}: {handled}");
            Books::of(&fixture, &ring_file).expect(&[0], 0..events, handled, &what);
            std::fs::remove_file(ring_file).expect("the ring file");
        }
    }
}

#[test]
fn a_forked_child_has_a_session_of_its_own() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("c-fork");
    for flags in ["-O2", BUILDS[1].1]
        .into_iter()
        .filter(|flags| can(GCC, flags))
    {
        let program = compile(&fixture, GCC, "load.c", flags, "load");
        run_load(&fixture, &program, DISCARD, "fork 500");
        let files = fixture.ring_files();
        assert_eq!(files.len(), 2, "{files:?}");
        let (mut parent, mut child) = (0, 0);
        for file in files {
            let books = Books::of(&fixture, &file);
            if books.work.contains_key(&1) {
                books.expect(&[1], 0..1000, 0, "parent");
                parent += 1;
            } else {
                books.expect(&[2], 0..500, 0, "child");
                child += 1;
            }
            std::fs::remove_file(file).expect("the ring file");
        }
        assert_eq!((parent, child), (1, 1));
    }
}

#[test]
fn what_was_committed_survives_sigkill() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("c-kill");
    let program = compile(&fixture, GCC, "load.c", "-O2", "load");
    let path = program.to_string_lossy();
    // In the middle of a record.
    let died = fixture.start(&path, DISCARD, "die 300").finish(LIMIT);
    assert_eq!(died.code(), 137);
    let ring_file = fixture.ring_file();
    Books::of(&fixture, &ring_file).expect(&[0], 0..300, 0, "died");
    std::fs::remove_file(ring_file).expect("the ring file");
    // From outside, anywhere. Overwrite mode: the newest are there.
    let counters = Counters::new(fixture.path("committed"));
    let arguments = format!("forever {}", fixture.path("committed").display());
    let running = fixture.start(&path, "mode=overwrite,ring=256K", &arguments);
    counters.wait_for(1);
    let _ = running.kill().expect("it runs");
    let committed = counters.read(1)[0];
    let books = Books::of(&fixture, &fixture.ring_file());
    let seqs = &books.work[&0];
    assert!(seqs.windows(2).all(|pair| pair[1] == pair[0] + 1));
    let last = *seqs.last().expect("events");
    // Its last event may be there although it was not counted any more.
    assert!(
        last + 1 == committed || last == committed,
        "{last}, committed {committed}"
    );
}

#[test]
fn types_of_shared_objects_that_come_and_go() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("c-plugin");
    let plugin = compile(&fixture, GCC, "plugin.c", "-O2 -fPIC -shared", "plugin.so");
    let host = compile(&fixture, GCC, "host.c", "-O2", "host");
    let arguments = plugin.to_string_lossy();
    let running = fixture.start(&host.to_string_lossy(), DISCARD, &arguments);
    let _ = running.finish(SOON).expect_code(0);
    let expected = [
        "host.called event info {\"n\":5}",
        "plugin.called event info {\"n\":2}",
        "plugin.called event info {\"n\":3}",
    ];
    assert_eq!(lines(&fixture, &fixture.ring_file()), expected);
}

/// As a user has it: installed, found by pkg-config, linked both ways, recorded by `ringmark run`.
#[test]
fn installed_library_and_examples() {
    if !require_tools(&["gcc", "g++", "pkg-config"]) {
        return;
    }
    let fixture = Fixture::new("c-install");
    let prefix = fixture.path("prefix");
    let mut install = Command::new(workspace_root().join("c-api/install.sh"));
    install.arg("--built").arg(BUILT);
    install.arg(&prefix);
    let _ = run(&mut install, LIMIT).expect("install.sh").expect_code(0);
    let mut config = Command::new("pkg-config");
    config.args(["--cflags", "--libs", "ringmark"]);
    config.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    let flags = run(&mut config, LIMIT)
        .expect("pkg-config")
        .expect_code(0)
        .stdout_text();
    let archive = prefix.join("lib/libringmark.a");
    let include = format!("-I{}/include", prefix.display());
    let archived = format!("{include} {} -lpthread -ldl -lm", archive.display());
    for (compiler, source) in [("gcc", "hello.c"), ("g++", "hello.cc")] {
        for flags in [&flags, &archived] {
            check_example(&fixture, compiler, source, flags, &prefix.join("lib"));
        }
    }
}

fn check_example(fixture: &Fixture, compiler: &str, source: &str, flags: &str, libraries: &Path) {
    let program = fixture.path("hello");
    let mut command = Command::new(compiler);
    command.current_dir(workspace_root().join("c-api/examples"));
    command
        .args(["-O2", "-Wall", source])
        .args(flags.split_whitespace());
    command.arg("-o").arg(&program);
    let _ = run(&mut command, LIMIT).expect(compiler).expect_code(0);
    let dump = fixture.path("hello.rmk");
    let mut command = fixture.command(ringmark().get_program());
    command
        .args(["run", "-o"])
        .arg(&dump)
        .arg("--")
        .arg(&program);
    command.env("LD_LIBRARY_PATH", libraries);
    let _ = run(&mut command, LIMIT).expect("ringmark").expect_code(0);
    let mut cat = ringmark();
    cat.arg("cat").arg(&dump);
    let text = run(&mut cat, LIMIT)
        .expect("ringmark")
        .expect_code(0)
        .stdout_text();
    assert_eq!(text.lines().count(), 26, "{source} {flags}:\n{text}");
    assert!(text.contains("request.done"), "{text}");
    assert!(
        text.contains("status=200 path=\"/index.html\" share=1.2"),
        "{text}"
    );
}
