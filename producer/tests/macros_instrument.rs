//! `#[instrument]` on functions: one finished span a call; only declared arguments are recorded.
#![forbid(unsafe_code)]

mod common;

use std::panic;
use std::rc::Rc;

use ringmark::client::Shape;
use ringmark::instrument;
use ringmark::{Level, redact};

#[instrument]
fn plain() -> u8 {
    7
}

#[instrument(name = "db.query", level = "debug", category = "db", target = "sql", fields(
    id, rows = rows.len(), plan = ?plan, user = %user, password = redact(password),
))]
fn query(id: u64, rows: Vec<u8>, plan: Option<u8>, user: String, password: &str) -> String {
    // The arguments can be used up: the span kept what it needs.
    drop(rows);
    assert!(plan.is_some() && password.len() > 1);
    user
}

#[instrument(fields(text, bytes, owned, all))]
fn texts(text: &str, bytes: &[u8], owned: String, all: [u16; 3]) -> usize {
    let (owned, all) = (owned, all);
    text.len() + bytes.len() + owned.len() + all.len()
}

#[instrument(skip(secret), skip_all)]
fn skipped(secret: &str) -> usize {
    secret.len()
}

struct Counter {
    n: u32,
}

impl Counter {
    /// Doubles as a test that attributes and visibility stay.
    #[instrument(fields(n = self.n, by))]
    #[inline(never)]
    pub(crate) fn add(&mut self, by: u32) -> &mut u32 {
        self.n += by;
        &mut self.n
    }
}

trait Named {
    #[instrument(name = "Named::name")]
    fn name(&self) -> String {
        "default".to_owned()
    }
}

impl Named for Counter {}

#[instrument(name = "generic", fields(count))]
fn generic<T: Clone, F>(value: &T, count: usize, make: F) -> impl Iterator<Item = T> + use<T, F>
where
    F: Fn(&T) -> T,
{
    let all: Vec<T> = (0..count).map(|_| make(value)).collect();
    all.into_iter()
}

#[instrument(fields(n))]
fn fails(n: u8) -> Result<u8, std::num::TryFromIntError> {
    let small = u8::try_from(u32::from(n) + 250)?;
    Ok(small)
}

#[instrument]
fn panics() {
    panic::resume_unwind(Box::new(()));
}

#[instrument(fields(depth))]
fn recursive(depth: u8) -> u8 {
    if depth == 0 {
        return 0;
    }
    1 + recursive(depth - 1)
}

#[instrument]
fn destructured((a, b): (u8, u8), r#in: u8, _: Rc<u8>) -> u8 {
    a + b + r#in
}

fn call_all() {
    assert_eq!(plain(), 7);
    let user = query(3, vec![0; 5], Some(1), "ann".to_owned(), "hunter2");
    assert_eq!(user, "ann");
    assert_eq!(texts("ab", &[1, 2], "x".repeat(600), [1, 2, 3]), 607);
    assert_eq!(skipped("hunter2"), 7);
    let mut counter = Counter { n: 40 };
    assert_eq!(*counter.add(2), 42);
    assert_eq!(counter.name(), "default");
    assert_eq!(generic(&1_u8, 2, |n| n + 1).sum::<u8>(), 4);
    assert_eq!(generic(&"a", 1, |s| s).count(), 1);
    assert!(fails(1).is_ok() && fails(9).is_err());
    assert!(panic::catch_unwind(panics).is_err());
    assert_eq!(recursive(2), 2);
    assert_eq!(destructured((1, 2), 3, Rc::new(0)), 6);
}

#[test]
fn calls_are_spans() {
    call_all(); // Without a session: the same results, nothing recorded.
    let session = common::start(|builder| builder);
    call_all();
    let all = common::read(&session);
    let without_duration = |name: &str| {
        let line = all.line(name);
        assert!(line.starts_with("duration="), "{line}");
        line.split_once(' ')
            .map_or(String::new(), |(_, rest)| rest.to_owned())
    };

    let found = all.event_type("plain");
    let facts = (
        found.level,
        found.shape,
        found.category.as_str(),
        found.target.as_str(),
    );
    assert_eq!(facts, (Level::Info, Shape::Span, "", module_path!()));
    assert!(found.file.ends_with("macros_instrument.rs"));
    assert_eq!(without_duration("plain"), "");

    let found = all.event_type("db.query");
    let facts = (
        found.level,
        found.shape,
        found.category.as_str(),
        found.target.as_str(),
    );
    assert_eq!(facts, (Level::Debug, Shape::Span, "db", "sql"));
    let expected = "id=3 rows=5 plan=Some(1) user=ann password=[redacted]";
    assert_eq!(without_duration("db.query"), expected);
    assert!(found.field("password").redacted);

    let cut = format!("{}…", "x".repeat(509));
    let expected = format!("text=ab bytes=0102 owned={cut} all=[1, 2, 3]");
    assert_eq!(without_duration("texts"), expected);
    assert_eq!(without_duration("skipped"), "");
    assert_eq!(
        without_duration("add"),
        "n=40 by=2",
        "values at the begin of the call"
    );
    assert_eq!(without_duration("Named::name"), "");
    assert_eq!(without_duration("destructured"), "");
    assert_eq!(all.of("generic").len(), 2);
    assert_eq!(all.of("fails").len(), 2);
    assert_eq!(
        all.of("panics").len(),
        1,
        "a span ends when a panic leaves it"
    );

    expect_depths(&all);
    expect_no_secret(&all);
}

/// The innermost call is recorded first, because it ends first.
fn expect_depths(all: &common::Recorded) {
    let depths: Vec<_> = all
        .of("recursive")
        .iter()
        .map(|r| all.text(r, "depth"))
        .collect();
    assert_eq!(depths, ["0", "1", "2"], "the innermost call ends first");
}

/// No argument is recorded that was not declared.
fn expect_no_secret(all: &common::Recorded) {
    let words = format!("{all:?}");
    assert!(!words.contains("hunter2"));
    let secret = b"hunter2";
    let leaked = all
        .records
        .iter()
        .any(|r| r.payload.windows(7).any(|w| w == secret));
    assert!(!leaked, "an argument that was not declared");
}
