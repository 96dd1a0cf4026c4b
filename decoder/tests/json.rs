//! JSON lines: one type per key and argument, ids as texts, no key twice, nothing rounded.

use crate::common;

use common::{FieldOf, PageOf, SESSION, end, event_entry, field, json, read, schema, start};
use ringmark_format::attribute::tag;
use ringmark_format::codec::write;
use ringmark_format::schema::{Kind, Level, Shape, semantic};
use ringmark_format::session::Mode;

/// The only line of one record of a type with these fields.
fn line(fields: &[FieldOf<'_>], payload: &[u64]) -> String {
    let mut bytes = start(Mode::Discard);
    let entry = event_entry(30, "odd", Level::Info, Shape::Instant, fields);
    write::schema(&mut bytes, SESSION, schema().len() as u64, &entry).unwrap();
    let mut page = PageOf::new(0, 0);
    page.event(5, 30, payload);
    page.close().write(true, &mut bytes);
    end(1, &mut bytes);
    let lines = json(&read(&bytes).unwrap());
    assert_eq!(lines.lines().count(), 1, "{lines}");
    lines
}

/// What a line ends with.
#[track_caller]
fn expect(line: &str, end: &str) {
    assert!(line.ends_with(&format!("{end}}}\n")), "{line}");
}

fn with<'a>(name: &'a str, kind: Kind, offset: u32, extra: &'a [(u16, &'a [u8])]) -> FieldOf<'a> {
    FieldOf {
        extra,
        ..field(name, kind, offset)
    }
}

#[test]
fn arguments_of_one_name_have_keys_of_their_own() {
    let u64 = |name, offset| field(name, Kind::U64, offset);
    let fields = [u64("n", 0), u64("n", 8), u64("n#2", 16), u64("n", 24)];
    expect(
        &line(&fields, &[1, 2, 3, u64::MAX]),
        concat!(
            r#""args":{"n":1,"n#2":2,"n#2#2":3,"n#3":18446744073709551615},"#,
            r#""exact":{"n#3":"18446744073709551615"}"#
        ),
    );
}

#[test]
fn the_type_of_a_number_is_that_of_its_declaration() {
    let f64 = |name, offset| field(name, Kind::F64, offset);
    let fields = [f64("whole", 0), f64("large", 8), f64("none", 16)];
    let payload = [1.0, 1e300, f64::NEG_INFINITY].map(f64::to_bits);
    expect(
        &line(&fields, &payload),
        r#""args":{"whole":1.0,"large":1e300,"none":null},"exact":{"none":"-inf"}"#,
    );
    let fields = [field("wide", Kind::U128, 0), field("n", Kind::I64, 16)];
    expect(
        &line(&fields, &[7, 0, (1 << 53) + 1]),
        r#""args":{"wide":"7","n":9007199254740993},"exact":{"n":"9007199254740993"}"#,
    );
    let array = FieldOf {
        count: 2,
        ..field("pair", Kind::U64, 0)
    };
    expect(
        &line(&[array], &[1 << 53, (1 << 53) + 1]),
        concat!(
            r#""args":{"pair":[9007199254740992,9007199254740993]},"#,
            r#""exact":{"pair":"9007199254740992 9007199254740993"}"#
        ),
    );
}

#[test]
fn ids_and_addresses_are_texts_that_no_reader_takes_for_numbers() {
    let meaning = |n: u32| n.to_le_bytes();
    let (flow, trace, address) = (
        meaning(semantic::FLOW),
        meaning(semantic::TRACE_ID),
        meaning(semantic::ADDRESS),
    );
    let flow: &[(u16, &[u8])] = &[(tag::SEMANTIC, &flow)];
    let trace: &[(u16, &[u8])] = &[(tag::SEMANTIC, &trace)];
    let address: &[(u16, &[u8])] = &[(tag::SEMANTIC, &address)];
    let fields = [
        with("job", Kind::U64, 0, flow),
        with("whole", Kind::U128, 8, trace),
        with("at", Kind::U64, 24, address),
    ];
    expect(
        &line(&fields, &[12, 0x99, 0x10, 0x7fff_0000_1000]),
        concat!(
            r#""flow":"0x000000000000000c","trace":"0x00000000000000100000000000000099","#,
            r#""args":{"at":"0x00007fff00001000"},"exact":null"#
        ),
    );
}
