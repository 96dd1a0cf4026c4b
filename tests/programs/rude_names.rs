//! A program whose names would drive a terminal: `rude_names READY` emits events, makes the file READY
//! and stays there, inside a span.

use std::time::Duration;
use std::{env, fs, thread};

use ringmark::{event, span};

const TEXT: &str = "\x1b[31m\x1b]0;title\x07\r\u{202e}</script>\"=1";

fn emit() {
    for number in 0..3_u32 {
        let _outer = span!("\x1b[31m\u{202e}span\r", number = number, text = TEXT);
        event!(level: Warn, "\x1b]0;title\x07event", text = TEXT);
        tracing::info!(text = TEXT, "\x1b[2J{TEXT}");
    }
}

fn main() {
    let _session = ringmark::tracing::init().ok().flatten();
    emit();
    let other = thread::Builder::new().name("=\x1b[31m\u{202e}\r".to_owned());
    let other = other.spawn(emit).expect("a thread");
    other.join().expect("it ends");
    let _open = span!("\x1b[31mopen", text = TEXT);
    fs::write(env::args().nth(1).expect("a file"), "").expect("a file");
    thread::sleep(Duration::from_secs(600));
}
