//! A program whose names are wide, made of marks, and long: `names READY` emits its events, makes the
//! file READY and stays there.

use std::time::Duration;
use std::{env, fs, thread};

use ringmark::{event, span};

const LONG: &str = "/a/path/that/is/much/too/long/for/any/terminal/要求要求要求要求要求要求要求/🚀🚀🚀🚀🚀/e\u{301}e\u{301}";

fn emit() {
    for number in 0..20_u32 {
        let _outer = span!(
            "要求を処理する.とても長い名前の区間です",
            number = number,
            経路 = LONG
        );
        event!(level: Warn, "queue.🚀🚀🚀", depth = number);
        event!("cafe\u{301}.re\u{301}sume\u{301}", number = number);
        let query = span!("db.query", rows = number);
        // Longer than the clock's smallest step, so that 0 ns would be a lie.
        thread::sleep(Duration::from_micros(20));
        drop(query);
        event!(level: Error, "a_name_that_is_longer_than_what_any_column_has_for_names_on_screens", text = LONG);
    }
}

fn main() {
    let _session = ringmark::start_from_env();
    emit();
    let other = thread::Builder::new().name("作業者-1".to_owned());
    let other = other.spawn(emit).expect("a thread");
    other.join().expect("it ends");
    let _open = span!("開いている", 経路 = LONG);
    fs::write(env::args().nth(1).expect("a file"), "").expect("a file");
    thread::sleep(Duration::from_secs(600));
}
