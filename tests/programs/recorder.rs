//! A recorder over the reader's library alone: `recorder DUMP [RING_FILE]` records the ring file, or
//! all sessions of `RINGMARK_DIR`, until its standard input ends (or all of them have).
//! `recorder --liveness RING_FILE` says whether its process lives, and whether a watch on it would.
//! `recorder --on-death DIR` waits beside all sessions and dumps those whose process dies.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringmark_reader::on_death::DeathWatch;
use ringmark_reader::{
    Access, Codec, Destination, Dump, Durability, ReaderError, RecordOptions, Recorder, Selection,
    Session,
};

fn stop_at_end_of_input() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = stop.clone();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        set.store(true, Ordering::Relaxed);
    });
    stop
}

fn record(dump: PathBuf, selection: Selection) -> Result<(), ReaderError> {
    let dump = Dump::create(&Destination::File(dump), Durability::System)?;
    let mut recorder = Recorder::new(selection, dump, RecordOptions::default())?;
    let ended = recorder.run(&stop_at_end_of_input())?;
    for notice in recorder.take_notices() {
        eprintln!("{notice}");
    }
    println!("{ended:?} {:?}", recorder.progress());
    Ok(())
}

fn look(ring_file: &Path) -> Result<(), ReaderError> {
    let session = Session::open(ring_file, Access::Observe)?;
    println!("{:?} {}", session.liveness(), session.process_ended());
    Ok(())
}

fn watch(directory: PathBuf) {
    let mut watch = DeathWatch::new(&directory, Codec::None);
    watch.run(&stop_at_end_of_input(), |event| println!("{event:?}"));
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let dump = arguments.next().expect("usage: recorder DUMP [RING_FILE]");
    if dump.as_os_str() == "--on-death" {
        watch(arguments.next().expect("a directory"));
        return ExitCode::SUCCESS;
    }
    if dump.as_os_str() == "--liveness" {
        look(&arguments.next().expect("a ring file")).expect("a session");
        return ExitCode::SUCCESS;
    }
    let selection = arguments.next().map_or(Selection::All, Selection::Path);
    match record(dump, selection) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
