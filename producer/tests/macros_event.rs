//! `#[derive(Event)]`: the record has the layout of the struct. In a program without `unsafe`.
#![forbid(unsafe_code)]

mod common;

use ringmark::Event;
use ringmark::Level;
use ringmark::client::Shape;

#[derive(Event)]
#[repr(C)]
#[event(
    name = "request.done",
    level = "debug",
    category = "http",
    target = "server"
)]
struct RequestDone {
    status: u16,
    #[event(unit = "ns")]
    latency_ns: u64,
    peer: [u8; 4],
    #[event(redact)]
    token: u32,
    #[event(skip)]
    _scratch: Option<Box<u8>>,
    ok: bool,
    grade: char,
    load: f32,
}

#[derive(Event, Clone, Copy)]
#[repr(C)]
struct Defaults {
    r#type: i8,
    big: u128,
    last: i8,
}

#[derive(Event)]
#[repr(C, align(64))]
struct Aligned {
    values: [u16; 5],
    more: [f64; 2],
}

#[derive(Event)]
#[repr(C)]
struct Empty {}

#[derive(Event)]
#[repr(C)]
struct Long {
    samples: [u64; 300],
}

#[derive(Event)]
#[repr(C)]
#[event(level = "trace")]
struct Off {
    n: u8,
}

mod inner {
    #[derive(ringmark::Event)]
    #[repr(C)]
    #[event(name = "inner")]
    pub(crate) struct Inner {
        pub(crate) n: usize,
    }
}

fn request() -> RequestDone {
    RequestDone {
        status: 503,
        latency_ns: 1_234_567,
        peer: [10, 0, 0, 1],
        token: 0xDEAD_BEEF,
        _scratch: Some(Box::new(7)),
        ok: true,
        grade: 'é',
        load: 0.75,
    }
}

fn emit_all() {
    ringmark::emit(&request());
    ringmark::emit(&Defaults {
        r#type: -1,
        big: 3,
        last: -2,
    });
    ringmark::emit(&Aligned {
        values: [1, 2, 3, 4, 5],
        more: [0.5, -0.5],
    });
    ringmark::emit(&Empty {});
    ringmark::emit(&Long {
        samples: std::array::from_fn(|i| i as u64),
    });
    ringmark::emit(&Off { n: 1 });
    let value = inner::Inner { n: 9 };
    ringmark::reserve::<inner::Inner>()
        .expect("it is on")
        .write(&value)
        .commit();
    ringmark::reserve::<inner::Inner>()
        .expect("it is on")
        .cancel();
    drop(
        ringmark::reserve::<inner::Inner>()
            .expect("it is on")
            .write(&value),
    );
    assert!(ringmark::reserve::<Off>().is_none());
}

#[test]
fn records_have_the_layout_of_the_struct() {
    assert!(
        ringmark::reserve::<Empty>().is_none(),
        "there is no session"
    );
    let session = common::start(|builder| builder.filter("debug"));
    emit_all();
    let all = common::read(&session);

    let done = all.event_type("request.done");
    let facts = (
        done.level,
        done.shape,
        done.category.as_str(),
        done.target.as_str(),
    );
    assert_eq!(facts, (Level::Debug, Shape::Instant, "http", "server"));
    assert!(done.file.ends_with("macros_event.rs"));
    assert_eq!(
        done.layout(),
        "status:u16@0 latency_ns:u64@8 peer:u8x4@16 token:u32@20 ok:bool@32 grade:char@36 load:f32@40"
    );
    assert_eq!(done.fixed_bytes as usize, size_of::<RequestDone>());
    assert_eq!(done.field("latency_ns").unit, "ns");
    assert!(done.field("token").redacted && !done.field("status").redacted);
    assert_eq!(
        all.line("request.done"),
        "status=503 latency_ns=1234567 peer=[10, 0, 0, 1] token=0 ok=true grade=é load=0.75"
    );
    let payload = &all.one("request.done").payload;
    assert_eq!(payload[24..32], [0; 8], "a skipped field is not written");

    expect_defaults(&all);
    assert_eq!(
        all.line("Aligned"),
        "values=[1, 2, 3, 4, 5] more=[0.5, -0.5]"
    );
    assert_eq!(all.one("Aligned").payload.len(), 64);
    assert!(all.one("Empty").payload.is_empty());
    let long = all.one("Long");
    assert_eq!(long.payload.len(), 2400);
    assert_eq!(long.payload[8 * 299..], 299_u64.to_le_bytes());
    assert!(all.of("Off").is_empty());
    assert_eq!(
        all.line("inner"),
        "n=9",
        "one was committed, two were cancelled"
    );
    assert!(all.event_type("inner").target.ends_with("::inner"));
}

/// A type without options has its own name, the default level and this module as target.
fn expect_defaults(all: &common::Recorded) {
    let defaults = all.event_type("Defaults");
    let facts = (
        defaults.level,
        defaults.category.as_str(),
        defaults.target.as_str(),
    );
    assert_eq!(facts, (Level::Info, "", module_path!()));
    assert_eq!(defaults.layout(), "type:i8@0 big:u128@16 last:i8@32");
    assert_eq!(all.line("Defaults"), "type=-1 big=3 last=-2");
    let mut expected = [0; 48];
    (expected[0], expected[16], expected[32]) = (0xFF, 3, 0xFE);
    assert_eq!(all.one("Defaults").payload, expected, "padding is zero");
}
