//! A traced program whose threads get their names after their first event: `named_late READY GO [PROGRAM]`. It
//! makes the file READY, waits for the file GO, and ends while threads run, or executes the program.

use std::ffi::CString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;
use std::{env, fs, process, thread};

use ringmark::{event, span};

/// Names the calling thread.
fn call_me(name: &str) {
    let name = CString::new(name).expect("no zero");
    rustix::thread::set_name(&name).expect("a name");
}

fn wait_for(file: &Path) {
    while !file.exists() {
        thread::sleep(Duration::from_millis(1));
    }
}

/// A thread with a name that is no longer its own after an event.
fn start(early: &str, work: impl FnOnce() + Send + 'static) -> thread::JoinHandle<()> {
    let thread = thread::Builder::new().name(early.to_owned());
    let body = || {
        event!("at.work");
        work();
    };
    thread.spawn(body).expect("a thread")
}

fn main() {
    let mut files = env::args().skip(1);
    let mut file = || files.next().expect("a file").into();
    let (ready, go): (std::path::PathBuf, std::path::PathBuf) = (file(), file());
    let _session = ringmark::start_from_env();
    // More than a page, so that a reader has something to take.
    (0..20_000_u64).for_each(|number| event!("at.begin", number = number));
    call_me("late main");
    let named = std::sync::Arc::new(std::sync::Barrier::new(4));
    let begin = |early: &str, late: &'static str, end: fn(&Path)| {
        let (named, go) = (named.clone(), go.clone());
        start(early, move || {
            call_me(late);
            named.wait();
            end(&go);
        })
    };
    let gone = begin("early gone", "late gone", wait_for);
    let _lives = begin("early lives", "late lives", |_| {
        thread::sleep(Duration::from_secs(600))
    });
    let _open = begin("early open", "late open", |_| {
        let _open = span!("left.open");
        thread::sleep(Duration::from_secs(600));
    });
    named.wait();
    fs::write(ready, "").expect("a file");
    wait_for(&go);
    gone.join().expect("it ends");
    if let Some(program) = env::args().nth(3) {
        let error = process::Command::new(program).arg("600").exec();
        panic!("{error}");
    }
    process::exit(0);
}
