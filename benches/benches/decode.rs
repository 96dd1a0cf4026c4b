//! P11: events per second of decoding, text and JSON, one core, a real trace of u64 events.

use std::hint::black_box;
use std::time::Instant;

use ringmark_benches::real::{read_lines, snapshot, sources, start};
use ringmark_benches::{finish, percentiles, pin};
use ringmark_decoder::{Dump, DumpBuilder, JsonWriter, Output, TextWriter};
use ringmark_reader::Codec;

const RING_BYTES: u32 = 32 << 20;

fn main() {
    pin(1);
    let session = start(RING_BYTES);
    while read_lines(&sources()) < 10_000 {}
    (0..8).for_each(|_| _ = read_lines(&sources()));
    let path = std::env::temp_dir().join(format!("ringmark-decode-{}.rmk", std::process::id()));
    let (bytes, _) = snapshot(&session, Codec::None, &path);
    let mut builder = DumpBuilder::new();
    builder.read("snapshot", &*bytes).expect("a readable dump");
    let dump = builder.finish();
    let text = |dump: &Dump| {
        let (mut writer, mut out) = (TextWriter::new(), Vec::with_capacity(1 << 17));
        write_all(dump, &mut out, |item, out| writer.write(item, out))
    };
    let json = |dump: &Dump| {
        let (mut writer, mut out) = (JsonWriter::new(), Vec::with_capacity(1 << 17));
        write_all(dump, &mut out, |item, out| writer.write(item, out))
    };
    let met = [
        rate("decode only", 50.0, &dump, |dump| {
            dump.events()
                .filter(|i| black_box(time(i)) < u64::MAX)
                .count()
        }),
        rate("text", 10.0, &dump, text),
        rate("JSON", 5.0, &dump, json),
    ];
    finish(met.contains(&false))
}

fn time(item: &Output<'_>) -> u64 {
    match item {
        Output::Event(event) => event.t_ns,
        Output::Lost(_) => 0,
    }
}

fn rate(what: &str, least: f64, dump: &Dump, run: impl Fn(&Dump) -> usize) -> bool {
    let mut rates = Vec::new();
    for _ in 0..15 {
        let start = Instant::now();
        let events = black_box(run(dump));
        rates.push(events as f64 / start.elapsed().as_secs_f64() / 1e6);
    }
    let [p10, median, p90] = percentiles(rates);
    let met = median >= least;
    let verdict = if met { "met" } else { "MISSED" };
    println!(
        "P11  {what:14} p10 {p10:6.1} median {median:6.1} p90 {p90:6.1} M events/s  bar {least:4.0}  {verdict}"
    );
    met
}

fn write_all<'a>(
    dump: &'a Dump,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&Output<'a>, &mut Vec<u8>),
) -> usize {
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
