//! `profile`: what a person sees of a program that was not prepared, and what that program sees of it.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use crate::common::{Stage, expect};

#[test]
fn a_program_that_waits_says_what_for_and_goes_on() {
    let stage = Stage::new("profile");
    let mut cat = Command::new("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = cat.id().to_string();
    // It may not have come to its read yet.
    let seen = loop {
        let seen = stage
            .run(&["profile", "-p", &pid, "--for", "200ms"])
            .expect_code(0)
            .stdout_text()
            .to_owned();
        if seen.contains("read pipe:[") {
            break seen;
        }
    };
    let title = seen.lines().next().unwrap();
    assert!(title.starts_with(&format!("cat[{pid}]: ")), "{title}");
    assert!(title.contains(" of 1 thread: "), "{title}");
    let headings: Vec<_> = seen
        .lines()
        .filter(|line| line.contains("WAITING") || line.contains("LONGEST"))
        .collect();
    assert_eq!(headings.len(), 3, "functions, waits, threads: {seen}");
    cat.stdin.take().unwrap().write_all(b"as before\n").unwrap();
    let mut said = String::new();
    cat.stdout
        .take()
        .unwrap()
        .read_to_string(&mut said)
        .unwrap();
    assert_eq!(said, "as before\n");
    assert!(cat.wait().unwrap().success());
}

#[test]
fn a_program_that_is_started_gives_its_output_and_status() {
    let stage = Stage::new("profile-program");
    let script = "echo from the program; sleep 0.3; exit 7";
    let seen = stage
        .run(&["profile", "--", "sh", "-c", script])
        .expect_code(7);
    assert_eq!(seen.stdout_text(), "from the program\n");
    let told = seen.stderr_text();
    assert!(told.starts_with("sh["), "{told}");
    // It had ended when the profile was made, and nothing was refused.
    assert!(!told.contains("may be read by its user"), "{told}");
    expect(
        stage.run(&["profile", "--", "./not-there"]),
        127,
        "./not-there: cannot be started",
    );
    expect(stage.run(&["profile"]), 2, "--pid");
}

#[test]
fn who_is_not_there_and_what_is_no_rate() {
    let stage = Stage::new("profile-wrong");
    // Beyond the largest pid that a kernel gives out.
    expect(
        stage.run(&["profile", "-p", "4194305"]),
        4,
        "pid 4194305: there is no such process",
    );
    expect(
        stage.run(&["profile", "-p", "1", "--sample", "0"]),
        2,
        "1..=1000",
    );
}
