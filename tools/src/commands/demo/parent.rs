//! The recording side of the demo: starts the job in a process of its own, and reads from it where
//! its session is and what its totals are.

use std::ffi::{OsStr, OsString};
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead, BufReader};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::Context;

use super::child::Trace;
use super::index::Totals;
use crate::recording::traced_program::exit_code;
use ringmark_console::Failure;

/// Jobs of one demo: all index the same directory with the same number of workers.
#[derive(Debug)]
pub(super) struct Jobs {
    dir: PathBuf,
    pub(super) workers: usize,
    /// Directory of sessions if the usual place cannot hold one; removed in the end.
    other_place: Option<PathBuf>,
}

/// What a job reports at its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Report {
    pub(super) totals: Totals,
    pub(super) took_ns: u64,
    pub(super) workers: u64,
}

/// A job that runs.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
    session: Option<PathBuf>,
}

impl Jobs {
    pub(super) fn new(dir: PathBuf, workers: usize) -> Self {
        Self {
            dir,
            workers,
            other_place: None,
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Starts a job; if there is a `tally`, its workers count in that file. A traced job has its session
    /// when this returns: in the usual place, or in the temporary directory if that has more room.
    ///
    /// # Errors
    /// It cannot be started, or cannot be traced.
    pub(super) fn start(
        &mut self,
        trace: Trace,
        tally: Option<&File>,
        more: &[impl AsRef<OsStr>],
    ) -> anyhow::Result<Running> {
        if self.other_place.is_none() && usual_place_is_small() {
            self.other_place = private_place().ok();
        }
        let mut started = self.try_start(trace, tally, more)?;
        if let Err(reason) = &started
            && self.other_place.is_none()
        {
            let place = private_place().map_err(|error| off(&format!("{reason}; {error:#}")))?;
            self.other_place = Some(place);
            started = self.try_start(trace, tally, more)?;
        }
        started.map_err(|reason| off(&reason).into())
    }

    /// Starts a job. The inner error is the reason why tracing is off.
    fn try_start(
        &self,
        trace: Trace,
        tally: Option<&File>,
        more: &[impl AsRef<OsStr>],
    ) -> anyhow::Result<Result<Running, String>> {
        let mut command = self.command(trace)?;
        match tally {
            Some(file) => command.arg("--tally").stdin(file.try_clone()?),
            None => command.stdin(Stdio::null()),
        };
        command.args(more).arg("--").arg(&self.dir);
        let mut child = command
            .stdout(Stdio::piped())
            .spawn()
            .context("demo: starting the traced job")?;
        let stdout = child
            .stdout
            .take()
            .context("demo: no output of the traced job")?;
        let mut running = Running {
            child,
            stdout: BufReader::new(stdout),
            session: None,
        };
        if trace == Trace::Off {
            return Ok(Ok(running));
        }
        let mut line = running.line()?;
        if line.starts_with(b"session ") {
            running.session = Some(OsString::from_vec(line.split_off(8)).into());
            return Ok(Ok(running));
        }
        let reason = line.strip_prefix(b"off ").unwrap_or(&line);
        Ok(Err(String::from_utf8_lossy(reason).into_owned()))
    }

    fn command(&self, trace: Trace) -> anyhow::Result<Command> {
        let own = std::env::current_exe().context("demo: finding this program")?;
        let mut command = Command::new(own);
        let trace = match trace {
            Trace::Off => "off",
            Trace::Env => "env",
            Trace::Flight => "flight",
            Trace::Record => "record",
            Trace::Tiny => "tiny",
        };
        command.args(["demo-job", "--trace", trace, "--workers"]);
        command.arg(self.workers.to_string());
        for name in ["RINGMARK", "RINGMARK_FILTER", "RINGMARK_TAGS"] {
            command.env_remove(name);
        }
        if let Some(place) = &self.other_place {
            command.env("RINGMARK_DIR", place);
        }
        Ok(command)
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        if let Some(place) = &self.other_place {
            // On failure it stays in the temporary directory.
            let _ = fs::remove_dir_all(place);
        }
    }
}

/// Whether the usual place is so small that a recorder could not keep up, and the temporary
/// directory is larger.
fn usual_place_is_small() -> bool {
    const ENOUGH: u64 = 32 << 20;
    let free = |dir: &Path| {
        let about = rustix::fs::statvfs(dir).ok()?;
        Some(about.f_bavail.saturating_mul(about.f_frsize))
    };
    let usual = std::env::var_os("RINGMARK_DIR").unwrap_or_else(|| "/dev/shm".into());
    let there = free(Path::new(&usual)).unwrap_or(ENOUGH);
    there < ENOUGH && free(&std::env::temp_dir()).is_some_and(|here| here > there)
}

fn off(reason: &str) -> Failure {
    Failure::no_target(format!("demo: tracing is off: {reason}"))
}

/// Makes a directory that only this user may enter.
pub(super) fn private_place() -> anyhow::Result<PathBuf> {
    let mut seed = [0; 8];
    rustix::rand::getrandom(&mut seed, rustix::rand::GetRandomFlags::NONBLOCK)?;
    let name = format!(
        "ringmark-demo-{}-{:x}",
        std::process::id(),
        u64::from_le_bytes(seed)
    );
    let path = std::env::temp_dir().join(name);
    let made = DirBuilder::new().mode(0o700).create(&path);
    made.with_context(|| format!("{}: cannot be made", path.display()))?;
    Ok(path)
}

impl Running {
    /// The job's session.
    ///
    /// # Errors
    /// It is not traced.
    pub(super) fn session(&self) -> anyhow::Result<PathBuf> {
        self.session.clone().context("demo: the job is not traced")
    }

    /// Kills it as `kill -9` does, and waits for its end.
    ///
    /// # Errors
    /// Those of the system.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Waits for the end of the job; what it reports.
    ///
    /// # Errors
    /// It ended early.
    pub(super) fn report(mut self) -> anyhow::Result<Report> {
        let said = self.result()?;
        let number = |name: &str| {
            said[name]
                .as_u64()
                .with_context(|| format!("demo: the job does not say {name}"))
        };
        Ok(Report {
            totals: Totals {
                files: number("files")?,
                directories: number("directories")?,
                bytes: number("bytes")?,
                lines: number("lines")?,
                unreadable: number("unreadable")?,
                events: number("events")?,
            },
            took_ns: number("took_ns")?,
            workers: number("workers")?,
        })
    }

    /// Waits for the end of the job; its last line.
    ///
    /// # Errors
    /// It ended early.
    pub(super) fn result(&mut self) -> anyhow::Result<serde_json::Value> {
        let line = self.line();
        let status = self
            .child
            .wait()
            .context("demo: waiting for the traced job")?;
        if !status.success() {
            let text = format!("demo: the traced job ended early: {status}");
            return Err(Failure {
                exit: exit_code(status),
                text,
            }
            .into());
        }
        serde_json::from_slice(&line?).context("demo: what the traced job says")
    }

    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        self.stdout.read_until(b'\n', &mut line)?;
        line.pop();
        Ok(line)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The job has ended, or its result is not wanted any more; the same is true of its session.
        let _ = self.kill();
        if let Some(session) = &self.session {
            let _ = fs::remove_file(session);
        }
    }
}
