//! A process that lives as a traced one, to be killed.

use std::mem::ManuallyDrop;
use std::path::PathBuf;
use std::process::{self, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use ringmark_format::session::Mode;
use ringmark_ring::identity;

use super::{Dir, Layout, Producer, emit};

/// If this process was started by [`start_child`]: lives as a traced process that wrote `count` events,
/// until it is killed. A test named `child` calls this.
pub fn live_as_child() {
    let Some(path) = env::var_os("RINGMARK_TEST_CHILD") else {
        return;
    };
    let dir = ManuallyDrop::new(Dir(PathBuf::from(path)));
    let overwrite = env::var_os("RINGMARK_TEST_OVERWRITE").is_some();
    let mode = if overwrite {
        Mode::Overwrite
    } else {
        Mode::Discard
    };
    let producer = Producer::new(&dir, "child", Layout::new(mode));
    assert!(identity::hold_lock(producer.ring.file()));
    let writer = producer.writer(0);
    (0..300).for_each(|n| assert!(emit(writer, 0, n)));
    fs::write(dir.join("ready"), "").unwrap();
    loop {
        thread::sleep(Duration::from_secs(1));
    }
}

/// A child process that lives as [`live_as_child`] says, in this directory; killed when dropped.
pub struct Child(pub process::Child);

pub fn start_child(dir: &Dir, mode: Mode) -> Child {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .args(["--exact", "live::child"])
        .env("RINGMARK_TEST_CHILD", &dir.0);
    if mode == Mode::Overwrite {
        command.env("RINGMARK_TEST_OVERWRITE", "1");
    }
    let child = Child(command.stdout(Stdio::null()).spawn().unwrap());
    let end = Instant::now() + Duration::from_secs(60);
    while !dir.join("ready").exists() {
        assert!(Instant::now() < end, "the child never got ready");
        thread::sleep(Duration::from_millis(1));
    }
    child
}

impl Child {
    /// Kills it; the kernel has ended it then.
    pub fn kill(&mut self) {
        self.0.kill().unwrap();
        let _ = self.0.wait().unwrap();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
