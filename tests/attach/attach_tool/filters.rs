//! Filters that allow less than a container's: the list of the system calls that attaching and
//! tracing make is whole, and what is refused is said before anything is done.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use ringmark_attach::SYSTEM_CALLS;
use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, compile, ringmark, tool};
use ringmark_tests::{is_long, require_tools, run};

use super::contained::filtered;
use super::load::Load;
use super::server::{SLEDS, Server};

/// What the server itself calls, its start included, that is not on the list.
const OWN: [i64; 10] = [
    libc::SYS_execve,
    libc::SYS_access,
    libc::SYS_set_tid_address,
    libc::SYS_socket,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_exit_group,
];
const TRACE: &str = "trace start -F serve_* -F mix_* -N serve_connection --detach";

/// Any call that is not listed kills.
#[test]
fn the_list_of_system_calls_is_whole() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("attach-only");
    let Some(filtered) = filtered(&fixture) else {
        return;
    };
    let program = compile(&fixture, "attach_workers.c", "workers", SLEDS);
    let _ = tool(&fixture);
    let listed = SYSTEM_CALLS.iter().map(|call| i64::from(call.number));
    let numbers: BTreeSet<_> = listed.chain(OWN).collect();
    let numbers: Vec<_> = numbers.iter().map(i64::to_string).collect();
    for _ in 0..if is_long() { 10 } else { 2 } {
        let mut command = fixture.command(&filtered);
        command.args(["only", &numbers.join(",")]).arg(&program);
        let server = Server::listen(command, &fixture.path("socket"), 4);
        let load = Load::start(&server.socket, 3, Duration::from_micros(500));
        let ask = |words: &str| {
            let said = ringmark(&fixture, &format!("{words} -p {}", server.pid()), &[]);
            said.expect_code(0)
        };
        let _ = ask(TRACE);
        load.goes_on(300);
        let _ = ask("snapshot -o /dev/null");
        let _ = ask("trace start -T sums --kind profile -F serve_* --detach");
        load.goes_on(300);
        let _ = ask("trace stop -T sums");
        let _ = ask("trace stop");
        load.goes_on(300);
        let _ = load.finish();
        server.finish();
    }
}

/// A server under a filter for one system call, which it does not make itself.
fn under(fixture: &Fixture, name: &str, how: &[&str], check: impl FnOnce(&Server)) {
    let listed = SYSTEM_CALLS.iter().find(|call| call.name == name);
    let number = listed.expect("it is listed").number.to_string();
    let mut command = fixture.command(fixture.path("filtered"));
    command.args([how[0], &number]).args(&how[1..]);
    command.arg(fixture.path("workers"));
    let server = Server::listen(command, &fixture.path("socket"), 2);
    check(&server);
    server.finish();
}

/// What the fixture needs for [`under`]; false where it cannot be tested.
fn prepared(fixture: &Fixture) -> bool {
    if !require_tools(&["gcc", "setpriv"]) || filtered(fixture).is_none() {
        return false;
    }
    let _ = compile(fixture, "attach_workers.c", "workers", SLEDS);
    true
}

fn words(server: &Server) -> String {
    format!("{TRACE} -p {}", server.pid())
}

/// Its mapped files. Its own threads, and their stacks, may only just begin.
fn files(server: &Server) -> String {
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid()));
    let maps = maps.expect("a living process");
    let lines = maps.lines().filter(|line| line.contains('/'));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn filters_that_do_not_allow_what_is_needed_are_refused_by_name() {
    let fixture = Fixture::new("attach-refused");
    if !prepared(&fixture) {
        return;
    }
    let refusals = [
        ("membarrier", &["kills"][..], "kills for membarrier, which"),
        ("statx", &["kills"], "kills for statx, which"),
        ("memfd_create", &["kills"], "kills for memfd_create, which"),
        (
            "membarrier",
            &["fails", "1"],
            "refuses membarrier (Operation not permitted",
        ),
        (
            "ppoll",
            &["fails", "38"],
            "refuses ppoll (Function not implemented",
        ),
        (
            "ppoll",
            &["fails", "0"],
            "takes ppoll away without an error",
        ),
    ];
    for (name, how, expected) in refusals {
        under(&fixture, name, how, |server| {
            let before = files(server);
            let said = ringmark(&fixture, &words(server), &[]);
            let said = said.expect_code(4).stderr_text();
            println!("{}", said.trim());
            let expected = format!("runs under seccomp: its filter {expected}");
            assert!(said.contains(&expected), "{said}");
            assert!(said.contains("'ringmark run'"), "{said}");
            assert_eq!(before, files(server), "its memory has changed");
        });
    }
}

#[test]
fn what_is_not_needed_may_fail() {
    let fixture = Fixture::new("attach-optional");
    if !prepared(&fixture) {
        return;
    }
    for (name, error) in [("sched_setscheduler", "1"), ("statx", "38")] {
        under(&fixture, name, &["fails", error], |server| {
            let _ = ringmark(&fixture, &words(server), &[]).expect_code(0);
            let stop = format!("trace stop -p {}", server.pid());
            let _ = ringmark(&fixture, &stop, &[]).expect_code(0);
        });
    }
}

#[test]
fn a_tool_that_may_trace_and_not_read_filters() {
    let fixture = Fixture::new("attach-unread");
    if !prepared(&fixture) {
        return;
    }
    under(&fixture, "sched_setscheduler", &["fails", "1"], |server| {
        let tool = tool(&fixture);
        let mut other = fixture.command("setpriv");
        other.args(["--bounding-set=-sys_admin", "--"]);
        other.arg(tool.get_program());
        other.envs(tool.get_envs().filter_map(|(k, v)| Some((k, v?))));
        other.args(words(server).split_whitespace());
        let said = run(&mut other, LIMIT).expect("setpriv").expect_code(4);
        let said = said.stderr_text();
        println!("{}", said.trim());
        assert!(said.contains("CAP_SYS_ADMIN"), "{said}");
    });
}
