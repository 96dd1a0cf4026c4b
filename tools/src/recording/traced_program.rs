//! A program that is started to be traced: its environment, its signals, its exit status, and the
//! processes that it leaves.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};

use ringmark_format::ending::Ending;
use ringmark_reader::Announcement;
use rustix::io::Errno;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, wait};

use super::left_processes;
use super::passed_signals::RunningPid;
use super::settings::ProgramOptions;
use crate::tracing::preload::Preload;
use ringmark_console::{Exit, Failure, given};

/// A program that was started, and runs or has ended. The processes that it leaves become children
/// of this process, so their end is seen, too.
#[derive(Debug)]
pub(super) struct TracedProgram {
    child: Child,
    name: String,
    /// How it ended, if it has.
    pub(super) status: Option<ExitStatus>,
    /// It, or another child of this process, runs.
    has_children: bool,
    /// The children that were there before.
    before: Vec<u32>,
    /// Its pid until it has been waited for.
    running: RunningPid,
    /// The tag that its session and those of its descendants carry: `run=…`.
    pub(super) tag: String,
    /// Tells these sessions that a recorder comes for them, before it has found them.
    announcement: Option<Announcement>,
}

impl TracedProgram {
    /// Starts a program so that it traces itself. With `to_stderr` its output goes to standard
    /// error, because standard output holds the trace.
    ///
    /// # Errors
    /// It is not there (exit code 127) or cannot be executed (126).
    pub(super) fn start(
        command: &[OsString],
        to_stderr: bool,
        options: &ProgramOptions,
        preload: Option<&Preload>,
    ) -> Result<Self, Failure> {
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::usage("no command after '--'"));
        };
        let tag = format!("run={}", random_uuid());
        // Where it fails, the program may lose events before its session is found, and they are counted.
        let announcement = Announcement::of_tag(&tag).ok();
        let name = program.to_string_lossy().into_owned();
        let mut variables = vec![
            ("RINGMARK", options.for_program(preload.is_some())),
            ("RINGMARK_TAGS", tags_with(&tag)),
        ];
        variables.extend(
            preload
                .into_iter()
                .flat_map(|preload| preload.variables(program)),
        );
        let redirects: &[_] = if to_stderr { &[1] } else { &[] };
        let mut command = given::command(program, arguments, &variables, redirects);
        if to_stderr {
            command.stdout(io::stderr());
        }
        let before = left_processes::children();
        // Without it, nothing is known of the processes that the program leaves.
        let _ = set_child_subreaper(Some(getpid()));
        match command.spawn() {
            Ok(child) => Ok(Self {
                running: Arc::new(Mutex::new(Some(child.id()))),
                child,
                name,
                status: None,
                has_children: true,
                before,
                tag,
                announcement,
            }),
            Err(error) => Err(not_started(&name, &error)),
        }
    }

    /// Sessions that begin from now on are not recorded: their threads need not wait.
    pub(super) fn announce_no_more(&mut self) {
        self.announcement = None;
    }

    /// Its process id.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its pid until it has been waited for, for who sends it signals.
    pub(super) fn running(&self) -> RunningPid {
        Arc::clone(&self.running)
    }

    /// Its name as it was given, for messages.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sees what has ended since the last look; `each` gets the pid and the end of each process.
    ///
    /// # Errors
    /// Those of `waitpid`.
    pub(super) fn look(&mut self, mut each: impl FnMut(u32, Ending)) -> io::Result<()> {
        // Nobody may signal its number while it becomes free.
        let running = Arc::clone(&self.running);
        let mut running = running.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    let pid = pid.as_raw_nonzero().get().cast_unsigned();
                    let status = ExitStatus::from_raw(status.as_raw());
                    if pid == self.pid() {
                        self.status = Some(status);
                        *running = None;
                    }
                    if let Some(ending) = ending(status) {
                        each(pid, ending);
                    }
                }
                Ok(None) => return Ok(()),
                Err(Errno::CHILD) => {
                    self.has_children = false;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether it, or a process that it left, runs.
    pub(super) fn is_running(&self) -> bool {
        self.has_children && (self.before.is_empty() || !self.left().is_empty())
    }

    /// The processes that it left, as far as the kernel tells.
    pub(super) fn left(&self) -> Vec<u32> {
        let mut left = left_processes::children();
        left.retain(|pid| !self.before.contains(pid));
        left
    }
}

/// How a process ended, by what waiting for it gave.
pub(super) fn ending(status: ExitStatus) -> Option<Ending> {
    Ending::of_wait_status(status.into_raw())
}

/// Checks that a program can be found, before the trace file of an earlier recording is renamed.
///
/// # Errors
/// It is nowhere to be found (exit code 127).
pub(super) fn check_program(command: &[OsString]) -> Result<(), Failure> {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let is_there = match std::env::var_os("PATH") {
        _ if is_path => Path::new(program).exists(),
        Some(path) => std::env::split_paths(&path).any(|dir| dir.join(program).exists()),
        // The system has one of its own.
        None => true,
    };
    if is_there {
        return Ok(());
    }
    let error = io::Error::from(rustix::io::Errno::NOENT);
    Err(not_started(&program.to_string_lossy(), &error))
}

pub(super) fn not_started(name: &str, error: &io::Error) -> Failure {
    let code = if error.kind() == io::ErrorKind::NotFound {
        127
    } else {
        126
    };
    Failure {
        exit: Exit(code),
        text: format!("{name}: cannot be started: {error}"),
    }
}

/// The exit code that shells give a status.
pub(crate) fn exit_code(status: ExitStatus) -> Exit {
    let signal = status.signal().unwrap_or(0);
    Exit(status.code().unwrap_or(128 + signal) as u8)
}

fn tags_with(tag: &str) -> OsString {
    let mut tags = std::env::var_os("RINGMARK_TAGS").unwrap_or_default();
    if !tags.is_empty() {
        tags.push(",");
    }
    tags.push(tag);
    tags
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
