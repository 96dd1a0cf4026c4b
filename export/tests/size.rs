//! Bytes of a slice and of an argument in Perfetto's format.

use crate::common;

use common::*;
use ringmark_export::{Cut, Format, Plan, write};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write as blocks;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

/// Names of the spans.
const NAMES: u32 = 64;

/// A million where there is time for it. The clock of a sequence counts from the packet before, so
/// bytes of a slice do not grow with their number.
fn spans() -> u64 {
    let is_long = std::env::var_os("RINGMARK_LONG").is_some_and(|value| value == "1");
    if is_long { 1_000_000 } else { 50_000 }
}

/// Bytes of an export of spans of 1 to 20 us, one after the other, each with this many arguments
/// below 128.
fn exported(arguments: usize) -> u64 {
    let mut out = Vec::new();
    blocks::session(
        &mut out,
        SESSION,
        &session_content(session_header(Mode::Discard)),
    )
    .unwrap();
    let duration = semantic::DURATION.to_le_bytes();
    let duration = [(tag::SEMANTIC, &duration[..])];
    let names: Vec<_> = (0..arguments).map(|n| format!("argument{n}")).collect();
    let mut schema = Vec::new();
    for id in 0..NAMES {
        let mut fields = vec![FieldOf {
            extra: &duration,
            ..field("duration", Kind::U64, 0)
        }];
        let others = names.iter().zip(1..);
        fields.extend(others.map(|(name, place)| field(name, Kind::U64, 8 * place)));
        let name = format!("app.span.{id}");
        schema.extend(event_entry(
            16 + id,
            &name,
            Level::Info,
            Shape::Span,
            &fields,
        ));
    }
    blocks::schema(&mut out, SESSION, 0, &schema).unwrap();
    let (mut tick, mut n) = (1000_u64, 0);
    let mut number = 0;
    while n < spans() {
        let mut page = PageOf::new(number, n);
        page.page_bytes = 1 << 16;
        page.header.tick_base = tick;
        let base = tick;
        while page.left() > 200 && n < spans() {
            let took = 1000 + n * 7919 % 19_000;
            tick += took + 200;
            let values = (0..arguments as u64).map(|place| (n + place) % 128);
            let payload: Vec<_> = [took].into_iter().chain(values).collect();
            page.event(
                (tick - base) as u32,
                16 + (n % u64::from(NAMES)) as u32,
                &payload,
            );
            n += 1;
        }
        page.close().write(true, &mut out);
        number += 1;
    }
    let dump = read(&out).unwrap();
    assert!(dump.damage.is_empty(), "{:?}", dump.damage);
    let plan = Plan::new(&dump, Cut::default());
    assert_eq!(plan.counts().slices, spans());
    let written = write(&plan, Format::Perfetto, &mut std::io::sink(), |_, _| {}).unwrap();
    written.bytes
}

#[test]
fn a_slice_has_at_most_30_bytes_and_an_argument_4_beside_its_value() {
    let bare = exported(0) as f64 / spans() as f64;
    println!("{bare:.2} bytes a slice");
    assert!(bare <= 30.0, "{bare}");
    for arguments in [1, 4] {
        let more = (exported(arguments) as f64 / spans() as f64 - bare) / arguments as f64;
        println!("{more:.2} bytes an argument, with its value of two bytes: tag and number");
        assert!(more <= 4.0 + 2.2, "{more}");
    }
}
