//! Mistakes with processes that run: without Ringmark, of another user, with a session of their own.

use std::fs;
use std::process::{Command, Stdio};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{compile, tool};
use ringmark_tests::process::READS_INPUT;
use ringmark_tests::{Running, require_tools, wait_until};

use super::{Mistake, expect_one, expect_told};

const EMIT: &str = ringmark_tests::program!("emit");

/// Waits for its input's end.
const WAITS: &str =
    "#include <stdio.h>\nint main(void) { while (getchar() != EOF) {} return 0; }\n";

/// A process that waits for its input, built with these flags.
fn waiting(fixture: &Fixture, flags: &str) -> Running {
    fs::write(fixture.path("waits.c"), WAITS).expect("a file");
    let source = fixture.path("waits.c").display().to_string();
    let program = compile(fixture, &source, "waits", flags);
    let mut command = fixture.command(program);
    let running = Running::start(command.stdin(Stdio::piped())).expect("a process");
    running.wait_until_in(&[READS_INPUT]);
    running
}

/// The objects that a process has loaded.
fn maps(running: &Running) -> String {
    fs::read_to_string(format!("/proc/{}/maps", running.id())).expect("a living process")
}

#[test]
fn processes_without_ringmark() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("mistakes-without");
    let plain = waiting(&fixture, "-O2");
    let (pid, before) = (plain.id(), maps(&plain));
    let not_traced: &[&str] = &[
        "not traced: it has no ringmark session; a program that uses ringmark starts one",
        "shows where the time of any other goes",
    ];
    let rows: [(&str, i32, &[&str], &[&str]); 6] = [
        ("cat", 4, not_traced, &["(start it with"]),
        ("snapshot", 4, not_traced, &["(start it with"]),
        ("record", 4, not_traced, &["(start it with"]),
        (
            "trace start --filter nosuch",
            4,
            &[
                "no function that can be traced is meant",
                "'ringmark functions -p ",
            ],
            &["loaded by thread", "matches no function"],
        ),
        (
            "functions nosuch*",
            4,
            &["\"nosuch*\" matches none of them"],
            &["'ringmark trace start"],
        ),
        (
            "trace start --for 1s",
            2,
            &["expected --filter PATTERN, or --all-functions"],
            &["loaded by thread", "matches no function"],
        ),
    ];
    for (words, code, said, unsaid) in rows {
        let words = format!("{words} -p {pid}");
        expect_told(
            &fixture,
            &[Mistake {
                words: &words,
                code,
                said,
                unsaid,
            }],
        );
        assert_eq!(maps(&plain), before, "{words}: something was loaded");
    }
}

#[test]
fn a_process_without_unwind_tables() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("mistakes-unwind");
    let flags =
        "-O2 -fpatchable-function-entry=5 -fno-unwind-tables -fno-asynchronous-unwind-tables";
    let bare = waiting(&fixture, flags);
    let words = format!("trace start --all-functions -p {}", bare.id());
    let said = ["built without unwind tables", "'ringmark run'"];
    expect_told(
        &fixture,
        &[Mistake {
            words: &words,
            code: 4,
            said: &said,
            unsaid: &[],
        }],
    );
}

#[test]
fn a_setting_that_cannot_be_understood_is_the_known_reason() {
    let fixture = Fixture::new("mistakes-setting");
    let off = fixture.start(EMIT, "mode=overwite", "0 1 hold=60000");
    let own = format!("{}-", off.id());
    wait_until(SOON, "its note", || {
        let entries = fs::read_dir(fixture.sessions()).into_iter().flatten();
        let mut names = entries.flatten().map(|entry| entry.file_name());
        names
            .any(|name| name.to_string_lossy().starts_with(&own))
            .then_some(())
    });
    for verb in ["cat", "snapshot", "record", "list"] {
        let words = format!("{verb} -p {}", off.id());
        let said =
            ["tracing is off in it: mode: found \"overwite\", expected discard or overwrite"];
        let unsaid = ["start it with RINGMARK=1"];
        expect_told(
            &fixture,
            &[Mistake {
                words: &words,
                code: 4,
                said: &said,
                unsaid: &unsaid,
            }],
        );
    }
}

#[test]
fn a_process_with_events_of_its_own() {
    let fixture = Fixture::new("mistakes-own");
    let own = fixture.start(EMIT, "1", "0 3 hold=60000");
    let _ = fixture.ring_file();
    let own_maps = || {
        let lines = maps(&own);
        lines.matches("libringmark_functions").count()
    };
    // No function is meant, or there is no tracer: that is the reason, not its events.
    let nothing_meant = "no function that can be traced is meant";
    let no_tracer = "runs without the function tracer";
    for (verb, said) in [
        ("trace start --filter nosuch", nothing_meant),
        ("trace start --filter nosuch --for 1s", nothing_meant),
        ("trace trigger f:entry=start", no_tracer),
        ("trace status", no_tracer),
    ] {
        let words = format!("{verb} -p {}", own.id());
        let unsaid = [
            "was loaded",
            "loaded by thread",
            "one session",
            "'ringmark list' says why",
        ];
        expect_told(
            &fixture,
            &[Mistake {
                words: &words,
                code: 4,
                said: &[said],
                unsaid: &unsaid,
            }],
        );
        assert_eq!(own_maps(), 0, "{verb}");
    }
}

#[test]
fn what_belongs_to_another_user() {
    if !require_tools(&["gcc", "setpriv"]) {
        return;
    }
    let fixture = Fixture::new("mistakes-foreign");
    let foreign = waiting(&fixture, "-O2");
    let as_other = |words: &str| {
        let mut command: Command = fixture.command("setpriv");
        command.args(["--reuid=64999", "--regid=64999", "--clear-groups", "--"]);
        command
            .arg(tool(&fixture).get_program())
            .args(words.split(' '));
        command.env_remove("RINGMARK_DIR").current_dir("/");
        command
    };
    let pid = foreign.id();
    let reading = format!("pid {pid}: reading /proc/{pid}/maps: not permitted");
    let whose = [
        reading.as_str(),
        "it is a process of root (uid 0)",
        "this is uid 64999",
    ];
    for words in [
        format!("cat -p {pid}"),
        format!("trace start --all-functions -p {pid}"),
    ] {
        let mistake = Mistake {
            words: &words,
            code: 4,
            said: &whose,
            unsaid: &["/proc/PID"],
        };
        let _ = expect_one(&fixture, &mut as_other(&words), &mistake);
    }
    let said = [
        "no sessions in /dev/shm/ringmark-64999; these are yours alone, root sees those of all users",
    ];
    let mistake = Mistake {
        words: "list",
        code: 0,
        said: &said,
        unsaid: &[],
    };
    let _ = expect_one(&fixture, &mut as_other("list"), &mistake);
}
