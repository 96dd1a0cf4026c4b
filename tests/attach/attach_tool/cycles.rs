//! Attach, start, stop and detach again and again, in programs that are nearly always inside the C
//! library or the loader.

use std::process::Stdio;
use std::time::{Duration, Instant};

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, compile, ringmark, tool};
use ringmark_tests::{Finished, Running, is_long, require_tools, wait_until};

use super::text::sites;

const SLEDS: &str = "-O2 -fpatchable-function-entry=5";
const KINDS: [&str; 4] = [
    "malloc malloc malloc",
    "printf printf",
    "dlopen dlopen",
    "malloc printf dlopen malloc printf dlopen",
];
/// On a machine on which much else runs no thread comes to a good place in time, once in a while; or
/// the loader's lock, which is not fair, is taken again and again by threads of the program: there its
/// own second thread loads nothing either; or the program has just begun. That is said, and asked again for so
/// long.
const ASKED_FOR: Duration = LIMIT;

#[test]
fn cycles_in_programs_that_loop_in_the_c_library() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let cycles = if is_long() { 200 } else { 6 };
    let fixture = Fixture::new("attach-cycles");
    let program = compile(&fixture, "attach_loop.c", "loop", SLEDS);
    let shared = format!("{SLEDS} -shared -fPIC");
    let plugin = compile(&fixture, "attach_plugin.c", "plugin.so", &shared);
    let _ = tool(&fixture);
    let (mut longest, mut again) = (Duration::ZERO, 0);
    for cycle in 0..cycles {
        let mut command = fixture.command(&program);
        command.arg("300").arg(&plugin);
        command.args(KINDS[cycle % KINDS.len()].split(' '));
        let mut target = Running::start(command.stdin(Stdio::piped())).expect("a target");
        let pid = target.id();
        let begun = Instant::now();
        again += attach(&fixture, pid);
        longest = longest.max(begun.elapsed());
        let ask = |words: &str| ringmark(&fixture, &format!("{words} -p {pid}"), &[]);
        let closed = || matches!(sites(pid, &program), (1.., 0)).then_some(());
        wait_until(LIMIT, "sites closed after the first start", closed);
        // The same process, prepared now.
        for _ in 0..2 {
            let said = ask("trace start --all-functions --detach").expect_code(0);
            assert!(said.stdout_text().contains(" matched, "), "{said:?}");
            assert!(closed().is_none(), "no site is open");
            let _ = ask("trace stop").expect_code(0);
            wait_until(LIMIT, "closed sites", closed);
        }
        drop(target.child().stdin.take());
        let text = target.finish(LIMIT).expect_code(0).stdout_text();
        assert!(text.contains("ok "), "{text}");
    }
    println!(
        "{cycles} cycles, 0 hangs; the longest attach, start, stop and detach took {longest:?}; {again} \
         times it was refused by name first"
    );
}

/// Loads, starts, stops and goes; says how often that was refused before.
fn attach(fixture: &Fixture, pid: u32) -> usize {
    let words = format!("trace start --all-functions --for 20ms -p {pid}");
    let mut refused = Vec::new();
    let begun = Instant::now();
    while begun.elapsed() < ASKED_FOR {
        let said: Finished = ringmark(fixture, &words, &[]);
        let text = said.stderr_text();
        if said.code() == 0 {
            let is_loaded = text.contains("function tracer loaded by thread");
            assert!(is_loaded || !refused.is_empty(), "{text}");
            return refused.len();
        }
        let named = [
            "no thread came to a place where",
            "has been in dlopen for",
            "its C library is too old, or not loaded yet",
        ];
        assert!(named.iter().any(|named| text.contains(named)), "{text}");
        refused.push(text);
    }
    panic!("{refused:#?}");
}
