//! Promise: unwinding through traced calls costs a small multiple of what it costs untraced, however
//! deep the stack is and however many threads there are.

use std::collections::BTreeMap;
use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, compile, library};
use ringmark_tests::{is_long, require_tools, run};

/// gcc links what C++ needs when it is told.
const CPP: &str = "-pthread -Wl,--no-as-needed -lstdc++";

/// Depths of calls; each is twice the one before, but for the first three.
const DEPTHS: [u64; 6] = [10, 100, 1000, 2000, 4000, 8000];
const THREADS: [u64; 3] = [0, 100, 400];
const THREADS_LONG: [u64; 3] = [0, 100, 2000];
/// Runs of each kind in turn.
const ROUNDS: usize = 3;

/// What may be had. A busy machine gets the same figures from longer rounds only, so the everyday
/// bars are wide: what grows with the depth or the threads is hundreds of times over them.
struct Bars {
    /// Times the untraced cost.
    times: u64,
    /// Or ns more than that.
    more: u64,
    /// Times the cost of half the depth.
    doubling: f64,
    /// `backtrace` of 64 frames, in ns.
    backtrace: u64,
}

fn bars() -> Bars {
    match is_long() {
        true => Bars {
            times: 3,
            more: 10_000,
            doubling: 2.3,
            backtrace: 100_000,
        },
        false => Bars {
            times: 8,
            more: 30_000,
            doubling: 4.0,
            backtrace: 300_000,
        },
    }
}

/// By what was done and the depth or the number of threads: the least ns.
type Costs = BTreeMap<(String, u64), u64>;

fn add(costs: &mut Costs, command: &mut Command) {
    command.args(DEPTHS.map(|depth| depth.to_string()));
    let threads = if is_long() { THREADS_LONG } else { THREADS };
    command.arg("threads").args(threads.map(|n| n.to_string()));
    let finished = run(command, LIMIT).expect("it starts").expect_code(0);
    for line in finished.stdout_text().lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [what, size, ns] = words[..] else {
            panic!("{line}");
        };
        let key = (what.to_owned(), size.parse().expect("a number"));
        let ns = ns.parse().expect("a number");
        let least = costs.entry(key).or_insert(ns);
        *least = ns.min(*least);
    }
}

#[test]
fn unwinding_costs_a_small_multiple_at_any_depth_and_beside_any_number_of_threads() {
    if !require_tools(&["g++"]) {
        return;
    }
    let fixture = Fixture::new("fn-unwinding");
    let flags = format!("{SITES} {CPP}");
    let program = compile(&fixture, "unwinding.cc", "unwinding", &flags);
    let (mut plain, mut traced) = (Costs::new(), Costs::new());
    for _ in 0..ROUNDS {
        add(&mut plain, &mut fixture.command(&program));
        let mut command = fixture.command(&program);
        command.env("RINGMARK", "mode=overwrite,ring=64K,page=4K,session=256M");
        command.env("RINGMARK_TRACE", "tracer=graph;filter=*");
        add(&mut traced, command.env("LD_PRELOAD", library()));
    }
    let bars = bars();
    let mut missed = Vec::new();
    let mut expect = |ok: bool, text: String| {
        println!("{text}");
        if !ok {
            missed.push(text);
        }
    };
    for (key, plain) in &plain {
        let (what, size) = key;
        let ns = traced[key];
        let is_near = ns <= bars.times * plain || ns <= plain + bars.more;
        expect(
            is_near || what == "backtrace",
            format!("{what} {size}: {ns} ns, untraced {plain}"),
        );
    }
    for size in [2000, 4000, 8000] {
        let of = |size| traced[&("throw".to_owned(), size)] as f64;
        let ratio = of(size) / of(size / 2);
        expect(
            ratio <= bars.doubling,
            format!("throw: {size} costs {ratio:.2} times half of it"),
        );
    }
    for depth in DEPTHS {
        let ns = traced[&("backtrace".to_owned(), depth)];
        expect(
            ns <= bars.backtrace,
            format!("backtrace at depth {depth}: {ns} ns"),
        );
    }
    assert_eq!(plain.len(), 2 * DEPTHS.len() + THREADS.len());
    assert!(missed.is_empty(), "{missed:#?}");
}
