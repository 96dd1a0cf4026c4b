//! What the tests of the command line share: a stage with its own session directory, a traced
//! program, and dumps that were damaged with care.
#![allow(dead_code, reason = "each test file uses a part of it")]

pub(crate) mod player;

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use std::{env, fs};

use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, kind};
use ringmark_format::codec::crc32;
use ringmark_format::page::PageHeader;
use ringmark_tests::process::heed_signals;
use ringmark_tests::{Finished, Running, TempDir, run};

/// Longest time that any command of these tests may take.
pub(crate) const LIMIT: Duration = Duration::from_secs(30);

/// A directory for dumps, with a session directory in it.
pub(crate) struct Stage {
    pub(crate) dir: TempDir,
}

impl Stage {
    pub(crate) fn new(label: &str) -> Self {
        let dir = TempDir::new(label).expect("a temporary directory");
        Self { dir }
    }

    /// A program with the stage's session directory and nothing else of Ringmark's environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        heed_signals();
        let mut command = Command::new(program);
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("RINGMARK") {
                command.env_remove(name);
            }
        }
        command.env("RINGMARK_DIR", self.dir.join("sessions"));
        // For some commands `ringmark` goes on as one that is found there.
        let path = env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", ringmark_tests::binary::BUILT));
        command.env_remove("PAGER").current_dir(&*self.dir);
        command
    }

    pub(crate) fn ringmark(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_ringmark"));
        command.args(arguments);
        command
    }

    /// Runs `ringmark` with these arguments.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        run(&mut self.ringmark(arguments), LIMIT).expect("ringmark starts")
    }

    /// Records a traced program with these arguments to `name`; losses are none of its business.
    pub(crate) fn record(&self, name: &str, traced: &[&str]) -> PathBuf {
        let program = traced_program();
        let mut arguments = vec!["record", "-o", name, "--", &program];
        arguments.extend(traced);
        let _ = self.run(&arguments).expect_code(0);
        self.dir.join(name)
    }

    /// Starts a traced program of its own and waits until its session is there.
    pub(crate) fn start(&self, options: &str, arguments: &[&str]) -> Running {
        let mut command = self.command(traced_program());
        command.args(arguments).env("RINGMARK", options);
        let running = Running::start(&mut command).expect("the traced program starts");
        ringmark_tests::wait_until(LIMIT, "its session", || self.ring_file(running.id()));
        running
    }

    /// As [`Stage::start`], and waits until that many of its events can be seen.
    pub(crate) fn start_with(&self, options: &str, arguments: &[&str], events: usize) -> Running {
        let running = self.start(options, arguments);
        let pid = running.id().to_string();
        ringmark_tests::wait_until(LIMIT, "its events", || {
            let seen = self.run(&["cat", "-p", &pid]).stdout_text();
            (seen.lines().count() >= events).then_some(())
        });
        running
    }

    /// The complete ring file of a process.
    pub(crate) fn ring_file(&self, pid: u32) -> Option<PathBuf> {
        let files = fs::read_dir(self.dir.join("sessions")).ok()?.flatten();
        let mut paths = files.map(|entry| entry.path());
        let start = format!("{pid}-");
        paths.find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&start) && name.ends_with(".ring")
        })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.dir.join(name), bytes).expect("the stage can be written");
    }
}

/// The traced program.
pub(crate) fn traced_program() -> String {
    ringmark_tests::binary::built("traced")
        .display()
        .to_string()
}

/// Lines of JSON on standard output.
pub(crate) fn json_lines(finished: &Finished) -> Vec<serde_json::Value> {
    let text = finished.stdout_text();
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    text.lines().map(parse).collect()
}

/// A block in a dump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) offset: usize,
    pub(crate) kind: u16,
    pub(crate) content_bytes: usize,
}

impl Place {
    pub(crate) fn content(&self) -> usize {
        self.offset + BlockHeader::BYTES
    }

    /// The header of a page's first record.
    pub(crate) fn first_record(&self) -> usize {
        self.content() + PageHeader::BYTES
    }

    pub(crate) fn end(&self) -> usize {
        self.content() + self.content_bytes.next_multiple_of(8)
    }
}

/// The blocks of a sound dump.
pub(crate) fn places(dump: &[u8]) -> Vec<Place> {
    let mut places = Vec::new();
    let mut offset = 0;
    while offset < dump.len() {
        assert_eq!(dump[offset..offset + 4], BLOCK_MAGIC);
        let number = |at: usize| u32::from_le_bytes(dump[offset + at..][..4].try_into().unwrap());
        let place = Place {
            offset,
            kind: number(4) as u16,
            content_bytes: number(48) as usize,
        };
        places.push(place);
        offset = place.end();
    }
    places
}

pub(crate) fn first(dump: &[u8], kind: u16) -> Place {
    let found = places(dump).into_iter().find(|place| place.kind == kind);
    found.expect("a block of this kind")
}

pub(crate) fn first_page(dump: &[u8]) -> Place {
    first(dump, kind::PAGE)
}

/// Makes the checksums of a block right again.
pub(crate) fn reseal(dump: &mut [u8], place: Place) {
    let content = crc32(&dump[place.content()..place.content() + place.content_bytes]);
    dump[place.offset + 56..][..4].copy_from_slice(&content.to_le_bytes());
    let header = crc32(&dump[place.offset..place.offset + 60]);
    dump[place.offset + 60..][..4].copy_from_slice(&header.to_le_bytes());
}

/// The exit code and one piece of text on standard error, with both outputs if either is wrong.
#[track_caller]
pub(crate) fn expect(finished: Finished, code: i32, text: &str) -> Finished {
    let finished = finished.expect_code(code);
    let told = finished.stderr_text();
    assert!(told.contains(text), "{text:?} is not in:\n{told}");
    assert!(!told.contains("panicked"), "{told}");
    finished
}
