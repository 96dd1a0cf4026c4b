//! Generic code: one place in the program, several types of arguments, one event type. Nothing is
//! described that does not hold for every record.
#![forbid(unsafe_code)]

mod common;

use ringmark::Value;

fn differs_at_the_end<T: Value + Copy>(x: T) {
    ringmark::event!("end", first = 7_u16, text = "t", x = x, last = 1_u8);
}

fn differs_at_the_start<T: Value + Copy>(x: T) {
    let _span = ringmark::span!("start", x = x, last = 1_u8);
}

fn agrees<T: std::fmt::Debug>(x: T) {
    ringmark::event!("agrees", x = ?x, last = 1_u8);
}

fn length<const N: usize>(x: [u8; N]) {
    ringmark::event!("length", x = x);
}

#[test]
fn only_what_holds_for_every_record_is_described() {
    let session = common::start(|builder| builder);
    differs_at_the_end(7_u32);
    differs_at_the_end(9_u64);
    differs_at_the_start(-1_i8);
    differs_at_the_start(1.5_f64);
    agrees(1_u8);
    agrees("two");
    length([1, 2]);
    length([3]);
    let all = common::read(&session);

    let end = all.event_type("end");
    assert_eq!(end.layout(), "first:u16@0 text:str@8");
    assert_eq!(end.fixed_bytes, 16);
    let records = all.of("end");
    assert_eq!(records.len(), 2);
    for record in &records {
        assert_eq!(
            (all.text(record, "first"), all.text(record, "text")),
            ("7".into(), "t".into())
        );
    }
    let bytes = |i: usize| records[i].payload.len();
    assert_eq!((bytes(0), bytes(1)), (32, 40), "no bytes are lost");

    assert_eq!(all.event_type("start").layout(), "duration:u64@0");
    assert_eq!(all.of("start").len(), 2);
    assert_eq!(all.event_type("length").layout(), "");
    assert_eq!(all.event_type("length").fixed_bytes, 0);

    assert_eq!(all.event_type("agrees").layout(), "x:str@0 last:u8@8");
    let texts: Vec<_> = all.of("agrees").iter().map(|r| all.text(r, "x")).collect();
    assert_eq!(texts, ["1", "\"two\""]);
}
