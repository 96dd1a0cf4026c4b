//! Values that may be absent, and the most arguments that an event can have: what the schema holds,
//! and the payload bytes.
#![forbid(unsafe_code)]

mod common;

use common::Recorded;
use ringmark::{async_span, event, instrument};

fn emit_optional() {
    let (some, none) = (Some("äö"), None::<String>);
    event!(
        "optional",
        a = Some(7_u8),
        b = None::<u32>,
        c = some,
        d = none,
        e = Some(-1_i128),
        f = None::<i128>,
        g = Some(false),
        h = Some(&[1_u8, 2][..]),
        i = 9_u8
    );
}

#[rustfmt::skip]
fn emit_most() {
    event!(
        "most",
        a0 = 1_u8, a1 = 1_u8, a2 = 1_u8, a3 = 1_u8, a4 = 1_u8, a5 = 1_u8, a6 = 1_u8, a7 = 1_u8,
        b0 = 1_u8, b1 = 1_u8, b2 = 1_u8, b3 = 1_u8, b4 = 1_u8, b5 = 1_u8, b6 = 1_u8, b7 = 1_u8,
        c0 = 1_u8, c1 = 1_u8, c2 = 1_u8, c3 = 1_u8, c4 = 1_u8, c5 = 1_u8, c6 = 1_u8, c7 = 1_u8,
        d0 = 1_u8, d1 = 1_u8, d2 = 1_u8, d3 = 1_u8, d4 = 1_u8, d5 = 1_u8, d6 = 1_u8, d7 = 7_u64,
    );
    let span = async_span!(
        "most.async",
        a0 = 1_u8, a1 = 1_u8, a2 = 1_u8, a3 = 1_u8, a4 = 1_u8, a5 = 1_u8, a6 = 1_u8, a7 = 1_u8,
        b0 = 1_u8, b1 = 1_u8, b2 = 1_u8, b3 = 1_u8, b4 = 1_u8, b5 = 1_u8, b6 = 1_u8, b7 = 1_u8,
        c0 = 1_u8, c1 = 1_u8, c2 = 1_u8, c3 = 1_u8, c4 = 1_u8, c5 = 1_u8, c6 = 1_u8, c7 = 1_u8,
        d0 = 1_u8, d1 = 1_u8, d2 = 1_u8, d3 = 1_u8, d4 = 1_u8, d5 = 1_u8, d6 = 1_u8, d7 = 7_u64,
    );
    drop(span);
}

#[instrument(fields(id, name))]
fn instrumented(id: Option<u32>, name: Option<String>) {
    drop((id, name));
}

#[test]
fn optional_values_and_most_arguments() {
    let session = common::start(|builder| builder);
    emit_optional();
    emit_most();
    instrumented(None, Some("a".to_owned()));
    let all = common::read(&session);
    optional_values_say_whether_they_are_there(&all);
    kept_values_may_be_absent(&all);
    thirty_two_arguments(&all);
}

fn kept_values_may_be_absent(all: &Recorded) {
    let layout = all.event_type("instrumented").layout();
    assert_eq!(layout, "duration:u64@0 id:u32?@8 name:str?@16");
    assert_eq!(all.text(all.one("instrumented"), "id"), "none");
    assert_eq!(all.text(all.one("instrumented"), "name"), "a");
}

fn optional_values_say_whether_they_are_there(all: &Recorded) {
    assert_eq!(
        all.event_type("optional").layout(),
        "a:u8?@0 b:u32?@4 c:str?@16 d:str?@32 e:i128?@48 f:i128?@80 g:bool?@112 h:bytes?@120 i:u8@136"
    );
    assert_eq!(
        all.line("optional"),
        "a=7 b=none c=äö d=none e=-1 f=none g=false h=0102 i=9"
    );
    let payload = &all.one("optional").payload;
    assert_eq!(payload[..12], [7, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
}

fn thirty_two_arguments(all: &Recorded) {
    let most = all.event_type("most");
    assert_eq!(most.fields.len(), 32);
    assert_eq!(most.field("d7").offset, 32);
    assert_eq!(all.text(all.one("most"), "d7"), "7");
    assert_eq!(all.event_type("most.async").fields.len(), 34);
    assert_eq!(all.text(all.one("most.async"), "d7"), "7");
}
