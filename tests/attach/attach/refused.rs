//! What cannot be loaded into is refused by name, and runs on untouched.

use std::process::{Command, Stdio};

use ringmark_attach::{LoadError, load};
use ringmark_tests::process::Running;
use ringmark_tests::{require_tools, run, wait_until};

use super::{Built, END, Target, options};

fn refusal(pid: i32, built: &Built) -> String {
    let error = load(pid, &built.library(), &options()).expect_err("a refusal");
    println!("{error}");
    error.to_string()
}

#[test]
fn kinds_of_programs() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    built.compile("static", "attach_server.c", &["-O1", "-static"]);
    let mut command = Command::new(built.path("static"));
    command.args(["60", "1"]);
    let target = Target::start(command);
    let text = refusal(target.pid(), &built);
    assert!(text.contains("statically linked"), "{text}");
    target.finish();
}

/// Waits until the kernel says this of it.
fn status_until(target: &Target, text: &str) {
    let path = format!("/proc/{}/status", target.pid());
    wait_until(END, text, || {
        let status = std::fs::read_to_string(&path).expect("a living process");
        status.contains(text).then_some(())
    });
}

#[test]
fn processes_that_are_not_there_or_not_ours() {
    if !require_tools(&["gcc", "setpriv", "strace"]) {
        return;
    }
    let built = Built::new();
    let text = refusal(i32::MAX, &built);
    assert!(text.contains("no such process"), "{text}");

    let target = built.target("sum");
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    other.arg(ringmark_tests::program!("load"));
    other.arg(target.pid().to_string()).arg(built.library());
    let said = run(&mut other, END).expect("setpriv").stderr_text();
    println!("{}", said.trim());
    let is_named = said.contains("ptrace refused") && said.contains("user 65534");
    assert!(is_named, "{said}");

    let mut strace = Command::new("strace");
    strace.args(["-qq", "-o", "/dev/null", "-p", &target.pid().to_string()]);
    let tracer = Running::start(strace.stdin(Stdio::null())).expect("strace");
    let traced = format!("TracerPid:\t{}\n", tracer.id());
    status_until(&target, &traced);
    let error = load(target.pid(), &built.library(), &options()).expect_err("traced");
    println!("{error}");
    let strace_id = tracer.id().cast_signed();
    let is_named = matches!(error, LoadError::TracedAlready { tracer, .. } if tracer == strace_id);
    assert!(is_named, "{error}");
    drop(tracer);
    target.finish();
}

#[test]
fn libraries_that_cannot_be_loaded() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    let target = built.target("malloc");
    let missing = built.path("missing.so");
    let error = load(target.pid(), &missing, &options()).expect_err("missing");
    println!("{error}");
    assert!(matches!(error, LoadError::NotUsable { .. }), "{error}");

    let text = built.path("text.so");
    std::fs::write(
        &text,
        "not a library, whatever its name says, for sixty-four bytes or more",
    )
    .expect("a file");
    let error = load(target.pid(), &text, &options()).expect_err("no library");
    println!("{error}");
    assert!(error.to_string().contains("invalid ELF header"), "{error}");

    // A function that is not there.
    let mut other = options();
    other.call = Some((c"not_there", c""));
    let error = load(target.pid(), &built.library(), &other).expect_err("no function");
    println!("{error}");
    assert!(error.to_string().contains("not_there"), "{error}");
    target.finish();
}

#[test]
fn a_stopped_process() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let built = Built::new();
    let target = built.target("sum");
    let signal = |signal| target.running.signal(signal).expect("a signal");
    signal(rustix::process::Signal::STOP);
    status_until(&target, "State:\tT (stopped)\n");
    let text = refusal(target.pid(), &built);
    signal(rustix::process::Signal::CONT);
    assert!(text.contains("SIGCONT"), "{text}");
    target.finish();
}
