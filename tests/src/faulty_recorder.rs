//! A recorder whose calls fail, and the session that it records again and again: a program left it
//! full of events.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use crate::delivery::Delivery;
use crate::fixture::{Fixture, SOON};
use crate::process::{Finished, run};
use crate::recording::{decode, record};
use crate::{binary, preload_shim};

/// Threads of the program.
pub const THREADS: u64 = 2;
/// Events of each thread; they all fit into its ring.
pub const EVENTS: u64 = 1500;
/// How it is traced.
pub const DISCARD: &str = "mode=discard,ring=64K,page=4K,session=1M,control=off,keep=always";

/// A discard session that a program left full of events, and a recorder of it.
#[derive(Debug)]
pub struct LeftSession {
    /// Where everything lies.
    pub fixture: Fixture,
    shim: PathBuf,
    /// The session.
    pub ring_file: PathBuf,
    /// The ring file as the program left it.
    pristine: PathBuf,
    /// Pid of the program, which is dead.
    pub pid: String,
}

impl LeftSession {
    /// The session that the program `emit` left.
    ///
    /// # Panics
    /// When that cannot be.
    #[must_use]
    pub fn new(label: &str, emit: &str) -> Self {
        let fixture = Fixture::new(label);
        let program = fixture.start(emit, DISCARD, &format!("{THREADS} {EVENTS}"));
        let pid = program.id().to_string();
        let _ = program.finish(SOON).expect_code(0);
        let ring_file = fixture.ring_file();
        let pristine = fixture.path("pristine");
        fs::copy(&ring_file, &pristine).unwrap();
        let shim = preload_shim::build(&fixture, "disk_shim");
        Self {
            fixture,
            shim,
            ring_file,
            pristine,
            pid,
        }
    }

    /// Where the dump goes.
    #[must_use]
    pub fn dump(&self) -> PathBuf {
        self.fixture.path("out/a.rmk")
    }

    /// Everything as the program left it, and no dump.
    ///
    /// # Panics
    /// When that cannot be.
    pub fn reset(&self) {
        fs::copy(&self.pristine, &self.ring_file).unwrap();
        fs::set_permissions(&self.ring_file, fs::Permissions::from_mode(0o600)).unwrap();
        let _ = fs::remove_dir_all(self.fixture.path("out"));
        fs::create_dir(self.fixture.path("out")).unwrap();
    }

    /// `ringmark record` of the session, from the beginning, behind the shim.
    ///
    /// # Panics
    /// When that cannot be.
    #[must_use]
    pub fn record(&self, options: &str, faults: &[(&str, &str)]) -> Finished {
        self.reset();
        let mut command = self.fixture.command(binary::path());
        command.args(["record", "-p", &self.pid, "-o"]);
        command
            .arg(self.dump())
            .args(options.split_ascii_whitespace());
        run(self.with_shim(&mut command, faults), SOON).unwrap()
    }

    /// Puts the shim with these settings in front of a command.
    pub fn with_shim<'a>(
        &self,
        command: &'a mut Command,
        faults: &[(&str, &str)],
    ) -> &'a mut Command {
        command.env("LD_PRELOAD", &self.shim);
        command.env("SHIM_DUMP", self.dump());
        command.envs(faults.iter().copied())
    }

    /// Files of the dump, oldest first.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        let path = |age: u32| match age {
            0 => self.dump(),
            _ => self.fixture.path(&format!("out/a.rmk.{age}")),
        };
        let ages = (0..200).rev().map(path);
        ages.filter(|path| path.exists()).collect()
    }

    /// Every event of the session is in the dump, or a second recorder gets it. The dump's files
    /// end with whole blocks.
    ///
    /// # Panics
    /// When that is not so.
    pub fn expect_nothing_lost(&self, what: &str) {
        let files = self.files();
        let found = decode(&files);
        assert!(found.damage.is_empty(), "{what}: {:?}", found.damage);
        let rest = self.fixture.path("out/rest");
        let mut all = files;
        if self.ring_file.exists() {
            record(&self.ring_file, &rest);
            all.push(rest);
        }
        let account = Delivery::of(&decode(&all));
        if account.lost() > 0 || account.delivered() != THREADS * EVENTS {
            println!("{what}: {} of {} files", account.delivered(), all.len());
        }
        account.expect_exact(THREADS, EVENTS);
        assert_eq!(account.lost(), 0, "{what}");
    }

    /// How often a recorder with these options makes each call on its dump.
    ///
    /// # Panics
    /// When it fails.
    #[must_use]
    pub fn calls(&self, options: &str) -> BTreeMap<&'static str, u64> {
        let log = self.fixture.path("log");
        let _ = fs::remove_file(&log);
        let log_name = log.to_string_lossy().into_owned();
        let _ = self
            .record(options, &[("SHIM_LOG", &log_name)])
            .expect_code(0);
        let mut calls = BTreeMap::new();
        for entry in preload_shim::read_log(&log) {
            *calls.entry(entry.call()).or_default() += 1;
        }
        calls
    }
}
