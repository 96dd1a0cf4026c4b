//! Promise: the model of a fleet agrees with a real collector, which as many real connections send to.

use std::ops::RangeInclusive;
use std::time::Duration;

use ringmark_tests::{is_long, require_tools};

use super::figures::{Figures, at};
use super::senders::Real;
use super::world::World;
use super::{Away, Fleet, SECOND};

/// What both can say of the same fleet.
#[derive(Debug)]
struct Found {
    puts_per_minute: f64,
    /// Bytes of pages in a segment.
    segment: f64,
    /// In seconds.
    lag_p50: f64,
    lag_p99: f64,
    /// Bytes that wait in the collector at the end of the stall.
    waiting: f64,
    /// Seconds after it until all have caught up.
    caught_up: f64,
}

impl Found {
    fn of(figures: &Figures, of: &Fleet) -> Self {
        let (steady, minutes) = (
            &figures.steady,
            of.gone_at() as f64 / 2.0 / 60.0 / SECOND as f64,
        );
        Self {
            puts_per_minute: steady.puts as f64 / minutes,
            segment: (steady.pages * of.block()) as f64 / steady.puts as f64,
            lag_p50: at(&steady.lags, 0.5),
            lag_p99: at(&steady.lags, 0.99),
            waiting: figures.waiting_at_return as f64,
            caught_up: at(&figures.caught_up, 1.0),
        }
    }

    fn each(&self) -> [(&'static str, f64); 6] {
        [
            ("puts a minute", self.puts_per_minute),
            ("bytes of a segment", self.segment),
            ("lag p50", self.lag_p50),
            ("lag p99", self.lag_p99),
            ("bytes that wait", self.waiting),
            ("caught up", self.caught_up),
        ]
    }
}

/// As many connections as there is credit for, so that none waits for that of another.
fn fleet() -> Fleet {
    let (hosts, before, away, memory) = match is_long() {
        true => (2000, 40, 30, 1 << 30),
        false => (100, 6, 2, 128 << 20),
    };
    Fleet {
        rate: 5000,
        page: 4096,
        flush: Duration::from_secs(1),
        memory,
        // The real ones connect at once.
        connect: 1,
        before,
        away,
        after: 1,
        ..Fleet::new(hosts, 1, Away::HangingStore)
    }
}

/// Between which ratios of the model to the real collector something agrees.
fn near(what: &str) -> RangeInclusive<f64> {
    match what {
        // It takes what two processors have left besides the senders.
        "caught up" => 0.0..=f64::MAX,
        // A short run has three puts, and a moment of a busy machine is much of it.
        _ if !is_long() => 0.5..=2.0,
        _ => 0.9..=1.1,
    }
}

#[test]
fn the_model_agrees_with_a_real_collector() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let mut fleet = fleet();
    let real = Real::run(&fleet);
    println!(
        "{} connections, a put took {:?}; the collector took {:.1} MB in a second of a processor",
        fleet.hosts,
        real.put,
        real.takes / 1e6
    );
    // The times of a put and of taking a page are those of this machine.
    fleet.put = real.put;
    fleet.put_bytes_per_second = u64::MAX;
    fleet.takes = real.takes as u64;
    let mut world = World::new(1, &fleet);
    world.run();
    let (real, model) = (
        Found::of(&real.figures, &fleet),
        Found::of(&world.figures, &fleet),
    );
    let mut far = Vec::new();
    for ((what, real), (_, model)) in real.each().into_iter().zip(model.each()) {
        let ratio = model / real;
        println!("  {what}: real {real:.3}, model {model:.3}, ratio {ratio:.3}");
        if !near(what).contains(&ratio) {
            far.push(what);
        }
    }
    assert!(far.is_empty(), "{far:?}");
}
