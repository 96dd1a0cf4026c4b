//! Events per second of decoding, text and JSON, on one core: one-u64 events of four rings.
//!
//! `cargo run --release -p ringmark-decoder --example throughput [EVENTS [RINGS]]`

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::Instant;

use common::{PageOf, end, start};
use ringmark_decoder::{Dump, JsonWriter, Output, TextWriter};
use ringmark_format::session::Mode;

fn make(events: u64, rings: usize) -> Vec<u8> {
    let mut out = start(Mode::Lossless);
    let mut state = 88_172_645_463_325_252u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut clocks = vec![1000u64; rings];
    let mut seen = vec![0u64; rings];
    let mut number = 0;
    while seen.iter().sum::<u64>() < events {
        for slot in 0..rings {
            let mut page = PageOf::new(number, seen[slot]);
            page.page_bytes = 65536;
            page.header.slot = slot as u32;
            page.header.ring_id = slot as u64;
            page.header.tick_base = clocks[slot];
            while page.left() >= 16 {
                clocks[slot] += 200 + random() % 1000;
                let ticks = (clocks[slot] - page.header.tick_base) as u32;
                page.event(ticks, 16 + (random() % 2) as u32, &[random() % 100_000]);
                seen[slot] += 1;
            }
            page.close().write(true, &mut out);
        }
        number += 1;
    }
    end(seen[0], &mut out);
    out
}

fn rate(name: &str, dump: &Dump, mut run: impl FnMut(&Dump) -> u64) {
    let mut best = 0.0f64;
    let mut events = 0;
    for _ in 0..5 {
        let start = Instant::now();
        events = black_box(run(dump));
        best = best.max(events as f64 / start.elapsed().as_secs_f64());
    }
    println!("{name}: {:.1} M events/s ({events} events)", best / 1e6);
}

fn main() {
    let argument = |n| std::env::args().nth(n).and_then(|n| n.parse().ok());
    let rings = argument(2).unwrap_or(4).max(1);
    let bytes = make(argument(1).unwrap_or(4_000_000) as u64, rings);
    let begin = Instant::now();
    let dump = common::read(&bytes).expect("a dump made here is readable");
    let load = begin.elapsed().as_secs_f64();
    println!("load: {:.2} GB/s", bytes.len() as f64 / load / 1e9);
    rate("decode", &dump, |dump| {
        dump.events()
            .filter(|item| match item {
                Output::Event(event) => black_box(event.t_ns) < u64::MAX,
                Output::Lost(_) => false,
            })
            .count() as u64
    });
    rate("text", &dump, |dump| {
        let (mut writer, mut out) = (TextWriter::new(), Vec::with_capacity(1 << 20));
        write_all(dump, &mut out, |item, out| writer.write(item, out))
    });
    rate("json", &dump, |dump| {
        let (mut writer, mut out) = (JsonWriter::new(), Vec::with_capacity(1 << 20));
        write_all(dump, &mut out, |item, out| writer.write(item, out))
    });
}

fn write_all<'a>(
    dump: &'a Dump,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&Output<'a>, &mut Vec<u8>),
) -> u64 {
    let mut events = 0;
    for item in dump.events() {
        write(&item, out);
        events += 1;
        if out.len() > 1 << 16 {
            black_box(&out);
            out.clear();
        }
    }
    events
}
