//! Promise: hosts that all come back after an outage of ten minutes do not storm, none starves, and what waited is
//! stored in order: without loss where the spill is large enough, and with an exact one where it is not.

use std::time::Instant;

use ringmark_tests::is_long;

use super::figures::{Figures, at};
use super::world::World;
use super::{Away, Fleet, SECOND};

/// Longest wait of a streamer between two attempts, with noise, and the mean of such waits, in seconds.
const LONGEST_WAIT: u64 = 8;
const MEAN_WAIT: f64 = 5.0;

/// Runs a fleet, and prints what it came to.
fn run(of: &Fleet) -> World {
    let begun = Instant::now();
    let mut world = World::new(1, of);
    world.run();
    let (f, back) = (&world.figures, of.before + of.away);
    println!(
        "{:?} away: {} hosts, {} collectors; {:?} of this machine",
        of.what,
        of.hosts,
        of.collectors,
        begun.elapsed()
    );
    println!(
        "  a second after the return, at most and p99: attempts {:?}, handshakes {:?}; {} in vain, {} evicted, {} refused, {} cut",
        Figures::peak(&f.attempts, back),
        Figures::peak(&f.handshakes, back),
        f.in_vain,
        f.evicted,
        f.refused,
        f.cut
    );
    println!(
        "  backlog of a host {:.1} to {:.1} MB, stored after {:.0} s (p1), {:.0} s (p50), {:.0} s (all); all caught up after {:.0} s; a page was acknowledged after {:.1} s (p50), {:.0} s (p99)",
        at(&f.backlogs, 0.0) as f64 / 1e6,
        at(&f.backlogs, 1.0) as f64 / 1e6,
        at(&f.drained, 0.01),
        at(&f.drained, 0.5),
        at(&f.drained, 1.0),
        at(&f.caught_up, 1.0),
        f.lag_at(0.5),
        f.lag_at(0.99),
    );
    println!(
        "  {} puts of {:.1} MB, {} failed; {} pages stored, {} twice, {} lost; at most {:.1} MB waited in a collector of {} MB",
        f.puts,
        f.put_bytes as f64 / 1e6 / f.puts as f64,
        f.failed_puts,
        f.stored,
        f.twice,
        lost(&world),
        f.most_waiting as f64 / 1e6,
        of.memory >> 20
    );
    let written: u64 = world.hosts.iter().map(|host| host.written).sum();
    assert_eq!(
        f.stored + lost(&world),
        written,
        "each page is stored or lost"
    );
    assert!(
        f.most_taken <= of.memory,
        "{} bytes of memory",
        f.most_taken
    );
    world
}

fn lost(world: &World) -> u64 {
    world.hosts.iter().map(|host| host.lost).sum()
}

/// The most attempts to connect in a second from the return on, and those after each host had time for one.
fn attempts(world: &World) -> (u64, u64) {
    let (all, back) = (&world.figures.attempts, world.of.before + world.of.away);
    let late = all
        .get((back + LONGEST_WAIT) as usize..)
        .unwrap_or_default();
    (Figures::peak(all, back).0, late.iter().sum())
}

/// Checks that hosts connected as they must, and that no host waited much longer than the store takes for all.
fn check(world: &World) {
    let (f, of) = (&world.figures, &world.of);
    let (most, late) = attempts(world);
    let mean = of.hosts as f64 / MEAN_WAIT;
    let by_chance = 5.0 * mean.sqrt();
    assert!(
        most as f64 <= 1.25 * mean + by_chance,
        "{most} attempts in a second"
    );
    assert_eq!(
        (late, f.evicted, f.refused, f.in_vain),
        (0, 0, 0, 0),
        "no host has to come again"
    );
    let waits = ((of.away - 1) * of.rate) as f64..=((of.away + 15) * of.rate) as f64 * 1.01;
    let backlogs = [at(&f.backlogs, 0.0) as f64, at(&f.backlogs, 1.0) as f64];
    assert!(
        backlogs.iter().all(|found| waits.contains(found)),
        "{backlogs:?}, expected {waits:?}"
    );
    let (puts, rate) = (
        of.collectors as f64 * of.puts(),
        of.hosts as f64 * of.rate as f64,
    );
    let backlog = f.backlogs.iter().sum::<u64>() as f64;
    let (stored, caught_up) = (at(&f.drained, 1.0), at(&f.caught_up, 1.0));
    assert!(
        stored <= 1.3 * backlog / puts,
        "{stored} s until the last backlog is stored"
    );
    assert!(
        at(&f.drained, 0.01) >= 0.5 * stored,
        "some hosts get much more than others"
    );
    // Hosts choose by chance: the collector that most chose is the last to catch up.
    let hosts = world.collectors.iter().flatten().map(|of| of.peers.len());
    let share = hosts.max().expect("collectors") as f64 / of.hosts as f64;
    let expected = share * backlog / (of.puts() - share * rate);
    let is_near = (0.85..1.15).contains(&(caught_up / expected));
    assert!(
        is_near,
        "{caught_up} s until all have caught up, computed {expected}"
    );
}

#[test]
fn hosts_that_come_back_together_do_not_storm_and_lose_nothing() {
    let sizes: &[_] = if is_long() {
        &[(10_000, 10), (100_000, 100)]
    } else {
        &[(1000, 1)]
    };
    for &(hosts, collectors) in sizes {
        for what in [Away::Collectors, Away::Store] {
            let world = run(&Fleet::new(hosts, collectors, what));
            check(&world);
            assert_eq!(lost(&world), 0);
        }
    }
}

#[test]
fn a_spill_that_is_too_small_loses_the_newest_pages_and_no_more() {
    let fleet = Fleet {
        spill: 5 << 20,
        ..Fleet::new(200, 1, Away::Collectors)
    };
    let world = run(&fleet);
    let room = fleet.spill / fleet.block() + fleet.ring;
    let written = fleet.away * SECOND / fleet.period();
    // Files of the spill go one by one, as soon as all of one is stored.
    let until_stored = at(&world.figures.drained, 1.0) as u64 + fleet.flush.as_secs();
    let more = until_stored * SECOND / fleet.period();
    for host in &world.hosts {
        let least = written - room;
        let found = host.lost;
        assert!(
            (least..=least + more).contains(&found),
            "{found} lost, expected {least}"
        );
    }
}

/// A fault that is planted: streamers that all wait equally long come back in one moment.
#[test]
fn without_noise_all_would_come_at_once() {
    let world = run(&Fleet {
        has_noise: false,
        away: 60,
        ..Fleet::new(200, 1, Away::Collectors)
    });
    assert!(attempts(&world).0 > 190, "{:?}", attempts(&world));
}
