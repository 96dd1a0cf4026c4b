//! G4: what a burst costs after a pause of more than 2^32 ticks, where a record does not reach the
//! time of its page any more, beside a burst without a pause.
//!
//! All bursts begin in a page that was opened just before the pause, which is one for all
//! contestants. After a pause that a page does bear, a burst finds the page as cold as after a long
//! one: what there is more than that is the price of its age.

use std::hint::black_box;
use std::process::Command;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use ringmark::{Mode, Session, event, span};
use ringmark_benches::part::{Part, build_c};
use ringmark_benches::{
    Row, child_argument, finish, in_child, percentiles, pin, print_bar, print_rows,
};
use ringmark_ring::RingFile;
use ringmark_ring::session_dir::{self, OpenFor};

const BURST: u64 = 10_000;
const ROUNDS: usize = 15;
/// In ms: none, less than 2^32 ticks of every counter to 5 GHz, and more from 1.8 GHz on.
const PAUSES_MS: [u64; 3] = [0, 800, 2500];

/// What is asked of a contestant.
#[derive(Clone, Copy)]
enum Order {
    OpenPage,
    Burst,
}

struct Contestant {
    /// Names of its rows, one for each pause.
    names: [&'static str; 3],
    /// Answers with ns an event.
    answer: Box<dyn FnMut(Order) -> f64>,
    ns: [Vec<f64>; 3],
}

/// Names of rows.
macro_rules! names {
    ($what:literal) => {
        [
            concat!($what, ", fresh page"),
            concat!($what, ", cold page"),
            concat!($what, ", old page"),
        ]
    };
}

fn main() {
    match child_argument().as_deref() {
        None => {
            let met = ["64", "1024"].map(in_child);
            finish(met.contains(&false))
        }
        Some(kib) => of_pages(kib.parse().expect("a number of KiB")),
    }
}

fn of_pages(kib: u32) -> ! {
    pin(1);
    let session = Session::builder()
        .mode(Mode::Overwrite)
        .page_bytes(kib << 10)
        .ring_bytes(kib << 12)
        .start()
        .expect("a session");
    let open = || {
        let file = session_dir::open(session.path(), OpenFor::Writing).expect("the ring file");
        RingFile::consume(file, session.path()).expect("a ring file")
    };
    let events = |n| (0..n).for_each(|i| event!("bench.event", value = black_box(i)));
    let spans = |n| {
        (0..n).for_each(|i| {
            let _span = span!("bench.span", value = black_box(i));
        });
    };
    let mut contestants = [
        thread(names!("event"), open(), events),
        thread(names!("span"), open(), spans),
        c_program(names!("C event"), kib, "inline"),
        c_program(names!("C call"), kib, "call"),
    ];
    for _ in 0..ROUNDS {
        for (index, pause) in PAUSES_MS.into_iter().enumerate() {
            for one in &mut contestants {
                (one.answer)(Order::OpenPage);
            }
            std::thread::sleep(Duration::from_millis(pause));
            for one in &mut contestants {
                one.ns[index].push((one.answer)(Order::Burst));
            }
        }
    }
    finish(report(kib, &contestants))
}

/// Prints the figures; returns whether a bar was missed.
fn report(kib: u32, contestants: &[Contestant]) -> bool {
    println!("\npages of {kib} KiB ({ROUNDS} interleaved rounds of {BURST})");
    let rows: Vec<_> = contestants
        .iter()
        .flat_map(|one| one.names.into_iter().zip(one.ns.clone()))
        .map(|(name, ns)| Row::of(name, ns))
        .collect();
    print_rows("ns", &rows);
    let mut missed = false;
    for one in contestants {
        let [fresh, _, old] = one.ns.clone().map(|ns| percentiles(ns)[1]);
        let met = old / fresh <= 1.5;
        missed |= !met;
        let what = format!("{} / fresh, pages of {kib} KiB", one.names[2]);
        print_bar("G4", &what, old / fresh, 1.5, met);
    }
    missed
}

/// A thread with a ring of its own.
fn thread(names: [&'static str; 3], ring: RingFile, emit: fn(u64)) -> Contestant {
    let (to, orders) = mpsc::channel::<Order>();
    let (done, from) = mpsc::channel();
    std::thread::spawn(move || {
        for order in orders {
            let start = Instant::now();
            match order {
                Order::OpenPage => open_page(&ring),
                Order::Burst => emit(BURST),
            }
            let ns = start.elapsed().as_nanos() as f64;
            done.send(ns / BURST as f64).expect("it waits");
        }
    });
    let answer = move |order| {
        to.send(order).expect("it waits");
        from.recv().expect("an answer")
    };
    Contestant {
        names,
        answer: Box::new(answer),
        ns: Default::default(),
    }
}

/// Emits until a page has been switched. No other thread emits during that time.
fn open_page(ring: &RingFile) {
    let slots = || (0..ring.slots_used()).filter_map(|index| ring.slot(index));
    let produced = || slots().map(|slot| slot.produced()).sum::<u64>();
    event!("bench.first");
    let before = produced();
    while produced() == before {
        event!("bench.between");
    }
}

/// A C program that emits inline or by calls; its windows are of 1,000 events.
fn c_program(names: [&'static str; 3], kib: u32, body: &'static str) -> Contestant {
    let options = format!(",page={kib}K,ring={}K", kib * 4);
    let mut part = Part::start("c", &options, &mut Command::new(build_c()));
    let windows = BURST / 1000;
    let answer = move |order| match order {
        Order::OpenPage => part.ask("open page"),
        Order::Burst => (0..windows).map(|_| part.ask(body)).sum::<f64>() / windows as f64,
    };
    Contestant {
        names,
        answer: Box::new(answer),
        ns: Default::default(),
    }
}
