//! A traced program for trying the tools: threads emit numbered events, then it says what it
//! emitted, as one line of JSON. The session is started by `RINGMARK`.
//!
//! `emitter [THREADS [EVENTS [DELAY_US]]] [mix] [hold=MS]`: EVENTS per thread, DELAY_US after each
//! one. `mix`: several types with strings, spans and counters; `hold`: lives on for that time.
//! `emitter turns`: does what each line of standard input says, then prints the line. A number: a
//! span, an event and a flow with it. `place N`: the event alone. `begin N`: a span that the line
//! `end` ends, and all between is inside.
use std::io::{self, BufRead};
use std::thread;
use std::time::Duration;

use ringmark::{Session, async_span, counter, event, flow, span};

struct Options {
    threads: u64,
    events: u64,
    delay: Duration,
    mix: bool,
    hold: Duration,
}

fn options() -> Option<Options> {
    let mut numbers = [4, 1000, 0];
    let (mut given, mut mix, mut hold) = (0, false, 0);
    for argument in std::env::args().skip(1) {
        if argument == "mix" {
            mix = true;
        } else if let Some(ms) = argument.strip_prefix("hold=") {
            hold = ms.parse().ok()?;
        } else {
            *numbers.get_mut(given)? = argument.parse().ok()?;
            given += 1;
        }
    }
    Some(Options {
        threads: numbers[0],
        events: numbers[1],
        delay: Duration::from_micros(numbers[2]),
        mix,
        hold: Duration::from_millis(hold),
    })
}

/// Exactly one record per call, whatever its type.
fn emit_one(mix: bool, thread: u64, seq: u64) {
    if !mix {
        return event!("emitter.tick", thread = thread, seq = seq);
    }
    match seq % 6 {
        0 => event!("emitter.tick", thread = thread, seq = seq),
        1 => drop(span!(category: "work", "emitter.work", thread = thread, seq = seq)),
        2 => counter!("emitter.depth", seq),
        3 => flow!("emitter.job", seq, step = "queued"),
        4 => event!(level: Warn, category: "text", "emitter.text",
            text = "tab\there \u{1b}[31mred\u{7} ümlaut \"quoted\" \\", seq = seq),
        _ => event!(level: Debug, target: "emitter::detail", "emitter.detail",
            big = u64::MAX - seq, ratio = seq as f64 / 7.0, even = seq.is_multiple_of(2), signed = -(seq as i64)),
    }
}

fn work(options: &Options, thread: u64) -> (i32, u64) {
    for seq in 0..options.events {
        emit_one(options.mix, thread, seq);
        if !options.delay.is_zero() {
            thread::sleep(options.delay);
        }
    }
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    (tid, options.events)
}

/// Emits what each line asks for, until they end, or the span that these are in.
fn take_turns(lines: &mut dyn Iterator<Item = String>) {
    while let Some(line) = lines.next() {
        let (word, number) = line.split_once(' ').unwrap_or(("", &line));
        match (word, number.parse::<u64>()) {
            ("place", Ok(n)) => event!("emitter.place", n = n),
            ("begin", Ok(n)) => {
                let shift = async_span!("emitter.shift", n = n);
                let _inside = shift.enter();
                println!("{line}");
                take_turns(lines);
                continue;
            }
            (_, Ok(n)) => {
                let turn = span!("emitter.turn", n = n);
                event!("emitter.place", n = n);
                drop(turn);
                flow!("emitter.large", u64::MAX - n, hash = u64::MAX - 2 * n);
            }
            _ => return println!("{line}"),
        }
        println!("{line}");
    }
}

fn main() {
    if std::env::args().nth(1).is_some_and(|word| word == "turns") {
        let _session = ringmark::start_from_env();
        return take_turns(&mut io::stdin().lock().lines().map_while(Result::ok));
    }
    let Some(options) = options() else {
        eprintln!("usage: emitter [THREADS [EVENTS [DELAY_US]]] [mix] [hold=MS] | turns");
        std::process::exit(2);
    };
    let session = ringmark::start_from_env().map(|session: Session| session.uuid().to_string());
    let done: Vec<_> = thread::scope(|scope| {
        let start = |n| {
            scope.spawn({
                let options = &options;
                move || work(options, n)
            })
        };
        let running: Vec<_> = (0..options.threads).map(start).collect();
        running.into_iter().filter_map(|t| t.join().ok()).collect()
    });
    let threads: Vec<_> = done
        .iter()
        .map(|(tid, emitted)| format!("{{\"tid\":{tid},\"emitted\":{emitted}}}"))
        .collect();
    println!(
        "{{\"pid\":{},\"session\":\"{}\",\"emitted\":{},\"threads\":[{}]}}",
        std::process::id(),
        session.unwrap_or_default(),
        done.iter().map(|(_, emitted)| emitted).sum::<u64>(),
        threads.join(",")
    );
    thread::sleep(options.hold);
}
