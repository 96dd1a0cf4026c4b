//! A program started to be traced: its environment, its signals, its exit status.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, getpgrp, kill_process};

use crate::output::{Exit, Failure};
use crate::tracing::preload::Preload;

/// What a program is traced with unless `RINGMARK` says otherwise: nothing may be missing, and
/// the session of a short-lived program is still there when we come to it.
const WANTED: &str = "mode=discard,ring=1M,session=64M,keep=always";

/// The same where functions are traced: they come by the million.
const WANTED_FOR_FUNCTIONS: &str = "mode=discard,ring=4M,session=256M,keep=always";

/// A running program.
#[derive(Debug)]
pub(crate) struct Traced {
    child: Child,
    name: String,
    forwarded: Option<i32>,
    /// The tag that its session and those of its descendants carry: `run=…`.
    pub(crate) tag: String,
}

/// Why a program could not be started.
#[derive(Debug)]
pub(crate) struct NotStarted {
    pub(crate) exit: Exit,
    pub(crate) text: String,
}

impl Traced {
    /// Starts a program so that it traces itself. With `to_stderr` its output goes to standard
    /// error, because standard output holds the dump.
    ///
    /// # Errors
    /// It is not there (127) or cannot be executed (126).
    pub(crate) fn start(
        command: &[OsString],
        to_stderr: bool,
        preload: Option<&Preload>,
    ) -> Result<Self, NotStarted> {
        let Some((program, arguments)) = command.split_first() else {
            let text = "no command behind '--'".to_owned();
            return Err(NotStarted {
                exit: Exit::USAGE,
                text,
            });
        };
        let tag = format!("run={}", random_uuid());
        let name = program.to_string_lossy().into_owned();
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("RINGMARK", settings(preload.is_some()));
        command.env("RINGMARK_TAGS", tags_with(&tag));
        command.envs(preload.map(Preload::variables).into_iter().flatten());
        if to_stderr {
            command.stdout(io::stderr());
        }
        match command.spawn() {
            Ok(child) => Ok(Self {
                child,
                name,
                forwarded: None,
                tag,
            }),
            Err(error) => Err(not_started(&name, &error)),
        }
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its name as given.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// What `waitpid` said.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Passes a signal on, once. A Ctrl-C on our terminal has reached it already.
    pub(crate) fn forward(&mut self, signal: i32) {
        if self.forwarded.replace(signal).is_some() || (signal == 2 && in_foreground()) {
            return;
        }
        let pid = Pid::from_child(&self.child);
        if let Some(signal) = Signal::from_named_raw(signal) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }
}

fn not_started(name: &str, error: &io::Error) -> NotStarted {
    let code = if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    NotStarted {
        exit: Exit(code),
        text: format!("{name}: cannot be started: {error}"),
    }
}

/// The exit code that stands for a status, as shells have it.
pub(crate) fn exit_code(status: ExitStatus) -> Exit {
    let signal = status.signal().unwrap_or(0);
    Exit(status.code().unwrap_or(128 + signal) as u8)
}

fn given() -> Option<OsString> {
    std::env::var_os("RINGMARK").filter(|v| !v.is_empty())
}

/// That `RINGMARK` can be used, before a program is started with it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_settings() -> Result<(), Failure> {
    let given = given().unwrap_or_default();
    let Some(text) = given.to_str() else {
        return Err(Failure::usage("RINGMARK: is not UTF-8"));
    };
    match ringmark::Options::parse(text) {
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::usage(format!("RINGMARK={text}: {error}"))),
    }
}

/// What the program finds in `RINGMARK`. Settings without `keep` are given ours: a program that
/// ends before we come to it would leave nothing.
fn settings(functions: bool) -> OsString {
    let given = given().unwrap_or_default();
    match given.to_str().map(str::trim) {
        Some("" | "1") if functions => WANTED_FOR_FUNCTIONS.into(),
        Some("" | "1") => WANTED.into(),
        Some(text) if kept_by_us() && text != "0" => format!("{text},keep=always").into(),
        _ => given,
    }
}

/// Whether what a program leaves is kept for our sake: `RINGMARK` says nothing of it.
pub(crate) fn kept_by_us() -> bool {
    let given = given().unwrap_or_default();
    let text = given.to_string_lossy();
    !text.split(',').any(|pair| pair.trim().starts_with("keep="))
}

/// Whether `RINGMARK` switches tracing off.
pub(crate) fn is_off() -> bool {
    given().is_some_and(|text| text.to_string_lossy().trim() == "0")
}

/// That a program is nowhere to be found: before a dump that is there is renamed for nothing.
pub(crate) fn missing(command: &[OsString]) -> Option<NotStarted> {
    let program = command.first()?;
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let is_there = match std::env::var_os("PATH") {
        _ if is_path => Path::new(program).exists(),
        Some(path) => std::env::split_paths(&path).any(|dir| dir.join(program).exists()),
        // The system has one of its own.
        None => true,
    };
    let error = io::Error::from(rustix::io::Errno::NOENT);
    (!is_there).then(|| not_started(&program.to_string_lossy(), &error))
}

fn tags_with(tag: &str) -> OsString {
    let mut tags = std::env::var_os("RINGMARK_TAGS").unwrap_or_default();
    if !tags.is_empty() {
        tags.push(",");
    }
    tags.push(tag);
    tags
}

fn in_foreground() -> bool {
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|tty| rustix::termios::tcgetpgrp(tty).is_ok_and(|group| group == getpgrp()))
}

fn random_uuid() -> String {
    let mut bytes = [0; 16];
    // Without entropy (an early boot) the process id still tells runs apart.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::NONBLOCK);
    bytes[..4]
        .iter_mut()
        .zip(std::process::id().to_le_bytes())
        .for_each(|(b, p)| *b ^= p);
    ringmark_format::Uuid(bytes).to_string()
}
