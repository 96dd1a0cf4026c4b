//! A session that has ended, its streamer, and a collector that does what a test wants.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use ringmark_reader::Selection;
use ringmark_reader::stream::{Address, StreamFigures, StreamOptions, Streamer};

use crate::collecting::stream_options;
use crate::fixture::{Fixture, SOON};
use crate::scripted_collector::ScriptedCollector;

/// The session, of two threads with more events than their rings hold, and its collector.
#[derive(Debug)]
pub struct StreamedScene {
    /// Holds the directories.
    pub fixture: Fixture,
    /// The collector.
    pub taker: ScriptedCollector,
    /// The session.
    pub ring_file: PathBuf,
}

/// A streamer at work, and its figures.
#[derive(Debug)]
pub struct Streaming {
    /// Gives the last figures and all notices.
    pub thread: JoinHandle<(StreamFigures, Vec<String>)>,
    /// The latest figures.
    pub figures: Arc<Mutex<StreamFigures>>,
}

impl StreamedScene {
    /// Runs `emit`, the program of that name, with a session of this mode (`mode=…` without the key).
    ///
    /// # Panics
    /// If it does not succeed.
    #[must_use]
    pub fn new(label: &str, emit: &str, mode: &str) -> Self {
        let fixture = Fixture::new(label);
        let ringmark = format!("mode={mode},page=16K,session=16M,keep=always");
        let program = fixture.start(emit, &ringmark, "2 2500 bulk=1000");
        let _ = program.finish(SOON).expect_code(0);
        Self {
            taker: ScriptedCollector::at(&fixture.path("socket")),
            ring_file: fixture.ring_file(),
            fixture,
        }
    }

    /// Starts a streamer of the session to the collector; `change` has its options before.
    ///
    /// # Panics
    /// If the options are refused; in its thread, if it fails.
    pub fn start(&self, change: impl FnOnce(&mut StreamOptions)) -> Streaming {
        let to = Address::Unix(self.fixture.path("socket"));
        let mut options = stream_options(Selection::Path(self.ring_file.clone()), to);
        change(&mut options);
        let mut streamer = Streamer::new(options).expect("a streamer");
        let figures = Arc::new(Mutex::new(StreamFigures::default()));
        let told = figures.clone();
        let thread = thread::spawn(move || {
            let mut notices = Vec::new();
            let each = |streamer: &mut Streamer| {
                *told.lock().expect("no panic before") = streamer.figures();
                notices.extend(streamer.take_notices());
            };
            let ran = streamer.run(&AtomicBool::new(false), each);
            ran.expect("it runs");
            (streamer.figures(), notices)
        });
        Streaming { thread, figures }
    }
}
