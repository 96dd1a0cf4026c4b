//! What shells complete beyond commands and options: processes with a session, their function
//! tracers, trace files.
//!
//! The script of `ringmark completions` runs `ringmark` with the line so far and [`COMPLETE`] set.

use std::env;
use std::ffi::OsStr;
use std::path::Path;

use clap::{Arg, Command};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter,
};
use ringmark_reader::{Access, Session, SessionInfo, find};

use crate::input::rings;
use crate::output::printable;
use crate::variables::COMPLETE;

/// Prints what can follow and ends the process, if a shell's script asks for it.
pub(super) fn answer(command: fn() -> Command) {
    CompleteEnv::with_factory(move || completing(command()))
        .var(COMPLETE)
        .complete();
}

/// The same command line, which knows values for its options and arguments.
fn completing(command: Command) -> Command {
    command.mut_args(with_values).mut_subcommands(completing)
}

fn with_values(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "pid" => arg.add(ArgValueCandidates::new(processes)),
        "tracer" => arg.add(ArgValueCandidates::new(tracers)),
        "files" => arg.add(ArgValueCompleter::new(
            PathCompleter::any().filter(is_trace_file),
        )),
        _ => arg,
    }
}

/// A trace file, by its name. Directories, which may be stores, are offered in any case.
fn is_trace_file(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("rmk"))
}

/// The processes with a session that lives, each with its name.
fn processes() -> Vec<CompletionCandidate> {
    let mut found: Vec<(u32, String)> = Vec::new();
    for place in find::all() {
        let Ok(session) = Session::open_found(&place, Access::Observe) else {
            continue;
        };
        let info = SessionInfo::of(&session);
        if let Some(pid) = session.pid_here().filter(|_| info.alive) {
            found.push((
                pid,
                format!("{} ({})", printable(&info.name), info.mode.name()),
            ));
        }
    }
    found.sort();
    found.dedup_by_key(|(pid, _)| *pid);
    let candidate = |(pid, text): (u32, String)| {
        CompletionCandidate::new(pid.to_string()).help(Some(text.into()))
    };
    found.into_iter().map(candidate).collect()
}

/// The names of the function tracers of the process that the line so far names.
fn tracers() -> Vec<CompletionCandidate> {
    let words: Vec<_> = env::args().collect();
    let Some(dump) = pid_in(&words).and_then(|pid| rings::snapshot(pid).ok()) else {
        return Vec::new();
    };
    let names = dump.tracer_names().into_iter();
    let names = names.map(|name| printable(&String::from_utf8_lossy(name)));
    names.map(CompletionCandidate::new).collect()
}

/// The value of `-p` or `--pid` in a command line.
fn pid_in(words: &[String]) -> Option<u32> {
    words.iter().enumerate().find_map(|(place, word)| {
        let next = || words.get(place + 1).map(String::as_str);
        let value = match word.as_str() {
            "-p" | "--pid" => next(),
            word => word
                .strip_prefix("--pid=")
                .or_else(|| word.strip_prefix("-p")),
        };
        value?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::{is_trace_file, pid_in};

    #[test]
    fn the_process_of_a_line_is_found_however_it_is_written() {
        let of = |line: &str| {
            let words: Vec<_> = line.split(' ').map(str::to_owned).collect();
            pid_in(&words)
        };
        for line in ["x -p 812 -T", "x --pid 812", "x --pid=812 -T g", "x -p812"] {
            assert_eq!(of(line), Some(812), "{line}");
        }
        assert_eq!(of("x -T 812 --paths"), None);
    }

    #[test]
    fn trace_files_have_their_ending() {
        assert!(is_trace_file("a/b.rmk".as_ref()));
        assert!(!is_trace_file("a/rmk".as_ref()) && !is_trace_file("b.rmk.old".as_ref()));
    }
}
