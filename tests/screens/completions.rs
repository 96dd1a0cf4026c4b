//! Promise: in bash, zsh and fish the completion of `ringmark` knows commands, options, the processes
//! that have a session, their function tracers, and trace files.

use std::fs;
use std::process::Command;

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, library};
use ringmark_tests::{Running, binary, has_tools, run, wait_until};

/// A directory with a trace file, a text and a folder, and a program with a session.
fn stage(label: &str) -> (Fixture, Running) {
    let fixture = Fixture::new(label);
    let ready = fixture.path("ready");
    let mut program = fixture.program(env!("CARGO_BIN_EXE_in_spans"), "mode=overwrite");
    let program = Running::start(program.arg("churn").arg(&ready)).expect("it starts");
    wait_until(SOON, "its session", || ready.exists().then_some(()));
    for file in ["run.rmk", "notes.txt"] {
        fs::write(fixture.path(file), "").expect("a file");
    }
    fs::create_dir(fixture.path("store")).expect("a folder");
    (fixture, program)
}

/// A shell in this directory, which finds `ringmark`.
fn shell(fixture: &Fixture, name: &str) -> Command {
    let mut shell = fixture.command(name);
    let beside = binary::path().parent().expect("a folder");
    let path = std::env::var("PATH").unwrap_or_default();
    shell.env("PATH", format!("{}:{path}", beside.display()));
    shell.env("HOME", fixture.path(".")).env("TERM", "xterm");
    shell.env("RINGMARK_LIB", library());
    shell.current_dir(fixture.path("."));
    shell
}

/// What a shell offers for a line: the script prints it for the line in `$LINE_SO_FAR`.
fn offered(shell: &mut Command, line: &str) -> Vec<String> {
    shell.env("LINE_SO_FAR", line);
    let finished = run(shell, LIMIT).expect("a shell");
    let text = finished.stdout_text();
    text.lines().map(str::to_owned).collect()
}

/// What each shell is asked, and what it offers: words that are there, and words that are not.
fn expect(of: impl Fn(&str) -> Vec<String>, pid: u32) {
    let pid = pid.to_string();
    for (line, there, absent) in [
        ("ringmark rec", &["record"][..], &["cat"][..]),
        ("ringmark doc", &["doctor"], &["demo-job"]),
        ("ringmark cat --no-p", &["--no-pager"], &["--json"]),
        ("ringmark cat -p ", &[&pid], &["run.rmk", "1"]),
        ("ringmark trace status --pid ", &[&pid], &["notes.txt"]),
        ("ringmark report ", &["run.rmk", "store/"], &["notes.txt"]),
        ("ringmark list r", &["run.rmk"], &["notes.txt"]),
    ] {
        let offered = of(line);
        // A shell may add the text about a word, and leave out the end of a folder's name.
        let has = |word: &str| {
            let mut first = offered
                .iter()
                .filter_map(|line| line.split_whitespace().next());
            first.any(|found| found.trim_end_matches('/') == word.trim_end_matches('/'))
        };
        for word in there {
            assert!(has(word), "{line}: no {word}: {offered:?}");
        }
        for word in absent {
            assert!(!has(word), "{line}: {word}: {offered:?}");
        }
    }
}

#[test]
fn bash_completes() {
    if !has_tools(&["bash"]) {
        return;
    }
    let (fixture, program) = stage("complete-bash");
    let script = r#"
source <(ringmark completions bash)
read -ra COMP_WORDS <<<"$LINE_SO_FAR"
[[ $LINE_SO_FAR == *' ' ]] && COMP_WORDS+=("")
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMP_TYPE=9
_clap_complete_ringmark ringmark "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\n' "${COMPREPLY[@]}"
complete -p ringmark >/dev/null || echo "not registered"
"#;
    let of = |line: &str| {
        let mut bash = shell(&fixture, "bash");
        offered(bash.args(["--norc", "-c", script]), line)
    };
    expect(of, program.id());
}

#[test]
fn fish_completes() {
    if !has_tools(&["fish"]) {
        return;
    }
    let (fixture, program) = stage("complete-fish");
    let script = "ringmark completions fish | source; complete -C \"$LINE_SO_FAR\"";
    let of = |line: &str| {
        let mut fish = shell(&fixture, "fish");
        offered(fish.args(["--no-config", "-c", script]), line)
    };
    expect(of, program.id());
}

/// The script lies where zsh finds it by its name, as `./install` leaves it. What zsh would show is
/// caught where it is handed over; its own start, which reads a thousand files, is left out.
#[test]
fn zsh_completes() {
    if !has_tools(&["zsh"]) {
        return;
    }
    let (fixture, program) = stage("complete-zsh");
    let script = r#"
mkdir -p functions && ringmark completions zsh >functions/_ringmark
fpath=($PWD/functions $fpath)
compdef() { :; }
_describe() { local name=$3; print -rl -- ${${(P)name}%%:*} }
words=(${(z)LINE_SO_FAR})
[[ $LINE_SO_FAR == *' ' ]] && words+=('')
CURRENT=$#words
autoload -Uz _ringmark && _ringmark
"#;
    let of = |line: &str| {
        let mut zsh = shell(&fixture, "zsh");
        offered(zsh.args(["-f", "-c", script]), line)
    };
    expect(of, program.id());
}

/// The function tracers of the process that the line names.
#[test]
fn tracers_of_a_process_are_offered() {
    let fixture = Fixture::new("complete-tracers");
    let source = ringmark_tests::functions::SITES;
    if !ringmark_tests::require_tools(&["gcc"]) {
        return;
    }
    let program = ringmark_tests::functions::compile(&fixture, "nested.c", "nested", source);
    let mut command = fixture.command(&program);
    command
        .env("RINGMARK", "mode=overwrite,ring=1M")
        .args(["-1", "200"]);
    command.env("LD_PRELOAD", library());
    command.env("RINGMARK_TRACE", "tracer=graph;filter=*");
    let running = Running::start(&mut command).expect("it starts");
    let _ = fixture.ring_file();
    let of = |line: &str| {
        let mut ringmark = shell(&fixture, &binary::path().display().to_string());
        ringmark.env("RINGMARK_COMPLETE", "fish").arg("--");
        let finished = run(ringmark.args(line.split(' ')), LIMIT).expect("it starts");
        finished.stdout_text()
    };
    let line = format!("ringmark trace stop -p {} -T ", running.id());
    wait_until(SOON, "its tracer", || {
        of(&line).contains("graph").then_some(())
    });
    assert_eq!(of("ringmark trace stop -T "), "");
}
