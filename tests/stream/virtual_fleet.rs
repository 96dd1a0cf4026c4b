//! Promise: hosts, collectors that share a store, and makers of tables lose nothing and repeat nothing, whatever is
//! killed, cut or answered wrongly. Thousands of schedules in virtual time, each a function of its seed.
//!
//! The state machines are those of the streamer, of a collector of objects and of the decoder. Files, sockets,
//! threads and clocks are not. Each run ends with a look at everything: the numbers that a program wrote are in the
//! store and in the tables, each once, and those that it did not get rid of are counted as lost.

#[path = "virtual_fleet/collector.rs"]
mod collector;
use crate::common;
#[path = "virtual_fleet/early.rs"]
mod early;
#[path = "fleet_model/mod.rs"]
mod fleet_model;
#[path = "virtual_fleet/host.rs"]
mod host;
#[path = "virtual_fleet/host_sending.rs"]
mod host_sending;
#[path = "virtual_fleet/program.rs"]
mod program;
#[path = "virtual_fleet/tables.rs"]
mod tables;
#[path = "virtual_fleet/troubles.rs"]
mod troubles;
#[path = "virtual_fleet/world.rs"]
mod world;
#[path = "virtual_fleet/world_troubles.rs"]
mod world_troubles;

use std::collections::BTreeSet;

use ringmark_decoder::Why;
use tables::number;
use troubles::Troubles;
use world::World;

/// A fault that is planted, to see that the schedules find it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Planted {
    Nothing,
    /// A collector acknowledges what is not put.
    AckBeforePut,
    /// The first copy of a page that grows counts.
    DropEqual,
    /// All files count, and not those that the log names.
    Glob,
    /// Tables go on over pages that may still come.
    OverGaps,
    /// The last words of a session are visible before its pages.
    FinalEarly,
}

/// What a schedule came to.
struct Outcome {
    numbers: u64,
    lost: u64,
    /// Numbers in pages that came after their host had said that they were gone.
    too_late: u64,
    troubles: Troubles,
}

fn run(seed: u64, planted: Planted) -> Result<Outcome, String> {
    let mut world = World::new(seed, planted);
    world.run()?;
    let (scanned, account) = tables::scan(&world.objects, planted);
    let (mut written, mut lost) = (BTreeSet::new(), 0);
    let mut kept = BTreeSet::new();
    for host in &world.hosts {
        let (numbers, lost_there) = host.program.written();
        lost += lost_there;
        if !host.program.overwrites {
            kept.extend(numbers.iter().copied());
        }
        written.extend(numbers);
        if host.waits_on_disk() > 0 {
            return Err(format!("{} pages wait on disk", host.waits_on_disk()));
        }
    }
    let found: Vec<u64> = scanned.iter().filter_map(|row| number(row)).collect();
    let once: BTreeSet<u64> = found.iter().copied().collect();
    if once.len() != found.len() {
        return Err(format!(
            "{} numbers come twice in a scan",
            found.len() - once.len()
        ));
    }
    if let Some(number) = kept.difference(&once).next() {
        return Err(format!("{number:#x} is not in a scan: {account:?}"));
    }
    if let Some(number) = once.difference(&written).next() {
        return Err(format!("{number:#x} was never written"));
    }
    let gone = (written.len() - once.len()) as u64;
    let counted = (account.lost, account.overwritten);
    if counted != (lost, gone) {
        return Err(format!(
            "{lost} lost and {gone} overwritten, counted {counted:?}"
        ));
    }
    let wrong = [
        account.missing,
        account.late,
        account.unknown,
        account.conflicts,
    ];
    if !account.complete || wrong != [0; 4] {
        return Err(format!("{account:?}"));
    }
    let too_late = check_tables(&world, &scanned, planted)?;
    Ok(Outcome {
        numbers: once.len() as u64,
        lost: lost + gone,
        too_late,
        troubles: world.troubles,
    })
}

/// Checks that tables have the rows of an export. A page is left out of them if its host could not know that it was
/// stored, told that it was overwritten, and it came after that was read. Returns the numbers in such pages.
fn check_tables(world: &World, scanned: &[String], planted: Planted) -> Result<u64, String> {
    let rows = world.tables.rows(planted);
    let unique: BTreeSet<_> = rows.iter().collect();
    if let Some(row) = rows.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("tables have twice {}", row[0]));
    }
    let scanned: BTreeSet<_> = scanned.iter().collect();
    if let Some(row) = unique.difference(&scanned).next() {
        return Err(format!("tables alone have {row}"));
    }
    let said = tables::told(&world.objects);
    let is_told_gone = |number: u64| {
        world.hosts.iter().any(|host| {
            let rings = host.program.rings.iter().enumerate();
            let mut places =
                rings.filter_map(|(slot, ring)| Some((slot as u32, *ring.numbers.get(&number)?)));
            let Some((slot, page)) = places.next() else {
                return false;
            };
            let absent = said[&host.program.session.0].absent(slot, page..page + 1);
            absent
                .parts
                .iter()
                .any(|part| part.why == Some(Why::Overwritten))
        })
    };
    let mut too_late = 0;
    for row in scanned.difference(&unique) {
        match number(row).is_some_and(is_told_gone) {
            true => too_late += 1,
            false => return Err(format!("tables have not {row}")),
        }
    }
    Ok(too_late)
}

/// The first schedule that finds a planted fault, among this number of them.
fn first_found(planted: Planted, seeds: u64) -> Option<(u64, String)> {
    (0..seeds).find_map(|seed| run(seed, planted).err().map(|why| (seed, why)))
}

#[test]
fn each_number_is_there_once_or_counted() {
    let seeds = match std::env::var_os("RINGMARK_LONG") {
        Some(_) => 10_000,
        None => 200,
    };
    let (mut all, mut numbers, mut lost, mut too_late) = (Troubles::default(), 0, 0, 0);
    for seed in 0..seeds {
        let outcome =
            run(seed, Planted::Nothing).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        all.add(&outcome.troubles);
        (numbers, lost) = (numbers + outcome.numbers, lost + outcome.lost);
        too_late += outcome.too_late;
    }
    println!(
        "{seeds} schedules: {numbers} numbers, {lost} lost and counted, {too_late} too late for tables"
    );
    for (what, times) in all.each() {
        println!("{times} {what}");
        assert!(times > seeds / 20, "{times} {what}");
    }
    assert!(lost > seeds);
}

#[test]
fn planted_faults_are_found() {
    for planted in [
        Planted::AckBeforePut,
        Planted::DropEqual,
        Planted::Glob,
        Planted::OverGaps,
        Planted::FinalEarly,
    ] {
        let found = first_found(planted, 300);
        let Some((seed, why)) = found else {
            panic!("no schedule finds {planted:?}");
        };
        println!("{planted:?}: seed {seed}: {why}");
    }
}
