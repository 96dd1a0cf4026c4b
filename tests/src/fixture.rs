//! A place for one test's traced programs: a session directory of its own, programs that know it,
//! and what they left there.

use std::fs;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use ringmark_reader::find;

use crate::dirs::TempDir;
use crate::process::{Running, heed_signals};
use crate::wait::wait_until;

/// How long anything may take that should be there at once, on a machine on which much else runs.
pub const SOON: Duration = Duration::from_secs(60);

/// The directory of one test, removed when dropped.
#[derive(Debug)]
pub struct Fixture {
    dir: TempDir,
}

impl Fixture {
    /// An empty fixture.
    ///
    /// # Panics
    /// When no temporary directory can be made.
    #[must_use]
    pub fn new(label: &str) -> Self {
        let dir = TempDir::new(label).expect("a temporary directory");
        Self { dir }
    }

    /// The session directory. The first traced program makes it.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.dir.join("sessions")
    }

    /// A path next to the session directory.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A command that runs `exe` here, traced as `ringmark` says (the value of `RINGMARK`).
    #[must_use]
    pub fn program(&self, exe: &str, ringmark: &str) -> Command {
        let mut command = self.command(exe);
        command.env("RINGMARK", ringmark);
        command
    }

    /// Starts `exe`, traced as `ringmark` says, with arguments that are separated by spaces.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn start(&self, exe: &str, ringmark: &str, arguments: &str) -> Running {
        let mut command = self.program(exe, ringmark);
        command.args(arguments.split_ascii_whitespace());
        Running::start(&mut command).expect("a program that starts")
    }

    /// A command that runs `exe` with this session directory and no other `RINGMARK*` variable.
    #[must_use]
    pub fn command(&self, exe: impl AsRef<Path>) -> Command {
        heed_signals();
        let mut command = Command::new(exe.as_ref());
        for (name, _) in std::env::vars_os() {
            let name_text = name.to_string_lossy();
            if name_text.starts_with("RINGMARK") || name_text.starts_with("OTEL_") {
                command.env_remove(&name);
            }
        }
        command.env("RINGMARK_DIR", self.sessions());
        command.stdin(Stdio::null());
        command
    }

    /// Ring files in the session directory, in the order of their names.
    #[must_use]
    pub fn ring_files(&self) -> Vec<PathBuf> {
        let found = find::in_directory(&self.sessions()).unwrap_or_default();
        let mut paths: Vec<_> = found.into_iter().map(|f| f.path).collect();
        paths.sort();
        paths
    }

    /// The only ring file, as soon as it is there.
    ///
    /// # Panics
    /// When it does not come, or there are several.
    #[must_use]
    pub fn ring_file(&self) -> PathBuf {
        let mut files = wait_until(SOON, "a ring file", || {
            Some(self.ring_files()).filter(|files| !files.is_empty())
        });
        assert_eq!(files.len(), 1, "several ring files: {files:?}");
        files.remove(0)
    }

    /// Bytes that the files of the session directory take in memory.
    ///
    /// # Panics
    /// When the directory cannot be read.
    #[must_use]
    pub fn allocated_bytes(&self) -> u64 {
        let entries = fs::read_dir(self.sessions()).expect("the session directory");
        let about = entries.flatten().filter_map(|e| e.metadata().ok());
        about.map(|m| m.blocks() * 512).sum()
    }

    /// Starts the recorder program `exe` on `dump`: of one ring file, or of all sessions here.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn recorder(
        &self,
        exe: &str,
        dump: &Path,
        ring_file: Option<&Path>,
    ) -> io::Result<Running> {
        let mut command = self.command(exe);
        command.arg(dump).args(ring_file).stdin(Stdio::piped());
        Running::start(&mut command)
    }
}

/// Waits until a process maps this ring file: a recorder has opened it.
///
/// # Panics
/// When it does not.
pub fn wait_until_mapped(by: &Running, ring_file: &Path) {
    wait_until(SOON, "the session to be opened", || {
        is_mapped(by, ring_file).then_some(())
    });
}

/// Whether a process maps this ring file; no, if it is gone.
#[must_use]
pub fn is_mapped(by: &Running, ring_file: &Path) -> bool {
    let Ok(about) = fs::metadata(ring_file) else {
        return false;
    };
    let inode = about.ino();
    let maps = fs::read_to_string(format!("/proc/{}/maps", by.id()));
    maps.unwrap_or_default().contains(&format!(" {inode} "))
}

/// A file of counters that a traced program shares with its test: it survives the program. Words
/// 510 and 511 are for what the test tells the program.
#[derive(Debug)]
pub struct Counters {
    path: PathBuf,
}

impl Counters {
    /// Makes the file, all zeros.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        fs::write(&path, [0; 4096]).expect("a file of counters");
        Self { path }
    }

    /// The argument that tells `emit` of it.
    #[must_use]
    pub fn argument(&self) -> String {
        format!("committed={}", self.path.display())
    }

    /// The first `count` counters.
    ///
    /// # Panics
    /// When the file cannot be read.
    #[must_use]
    pub fn read(&self, count: u64) -> Vec<u64> {
        let bytes = fs::read(&self.path).expect("the file of counters");
        let (words, _) = bytes.as_chunks::<8>();
        let words = words.iter().take(count as usize);
        words.map(|word| u64::from_le_bytes(*word)).collect()
    }

    /// The ledger of the first `count` threads: calls that have returned, and calls that have begun.
    ///
    /// # Panics
    /// As [`Counters::read`].
    #[must_use]
    pub fn ledger(&self, count: u64) -> Vec<(u64, u64)> {
        let all = self.read(256 + count);
        let begun = all[256..].iter().copied();
        all.iter().copied().zip(begun).collect()
    }

    /// Waits until all of the first `count` threads have committed something.
    ///
    /// # Panics
    /// When they do not.
    pub fn wait_for(&self, count: u64) {
        self.wait_for_each(count, 1);
    }

    /// Waits until each of the first `count` threads has committed that many events.
    ///
    /// # Panics
    /// When they do not.
    pub fn wait_for_each(&self, count: u64, events: u64) {
        wait_until(SOON, "every thread emits", || {
            let all = self.read(count);
            all.iter().all(|n| *n >= events).then_some(())
        });
    }

    /// Lets the threads of `emit` pass their gate.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn go(&self) {
        self.allow(u64::MAX);
    }

    /// Lets each of them pass it for that many events in all.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn allow(&self, events: u64) {
        self.set(510, events);
    }

    /// As [`Counters::go`], as a line of a shell script.
    #[must_use]
    pub fn go_in_shell(&self) -> String {
        let file = self.path.display();
        format!("printf 11111111 | dd of={file} bs=1 seek=4080 conv=notrunc status=none")
    }

    /// Lets the threads of `emit` come to their end.
    ///
    /// # Panics
    /// When the file cannot be written.
    pub fn stop(&self) {
        self.set(511, 1);
    }

    fn set(&self, word: u64, value: u64) {
        let file = fs::OpenOptions::new().write(true).open(&self.path);
        let set = file.and_then(|file| file.write_all_at(&value.to_le_bytes(), 8 * word));
        set.expect("the file of counters");
    }
}

/// Tells a recorder to end, waits for it, and returns what it said about itself.
///
/// # Panics
/// When it does not end well in `timeout`.
#[must_use]
pub fn stop_recorder(mut recorder: Running, timeout: Duration) -> String {
    drop(recorder.child().stdin.take());
    recorder.finish(timeout).expect_code(0).stdout_text()
}
