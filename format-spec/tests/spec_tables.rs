//! The tables of `SPEC.md` equal the code, in both directions. The comparer is itself tested with
//! planted drifts.

use crate::spec_text;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ringmark_format::counters::Cause;
use ringmark_format::function::TracerKind;
use ringmark_format::schema::{self, Kind, Level, Shape};
use ringmark_format::session;
use ringmark_format::session::{Clock, Mode};
use ringmark_format::{
    block, clock, counters, ending, function, layout_table, mailbox, objects, open_span, page,
    progress, record, removals, samples, store, stream, switches,
};
use spec_text::{Row, named_tables, public_constants, table_after};

type Tables = BTreeMap<String, Vec<Row>>;

fn crate_dir() -> PathBuf {
    // At run time: an edit of the text alone must be seen without a rebuild.
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn spec() -> String {
    read(&crate_dir().join("SPEC.md"))
}

/// Every difference between what the text says and what the code says; empty: none.
fn differences(text: &Tables, code: &Tables) -> Vec<String> {
    let mut found = Vec::new();
    for (name, rows) in code {
        match text.get(name) {
            None => found.push(format!("{name}: no table in SPEC.md")),
            Some(said) => differing_rows(name, said, rows, &mut found),
        }
    }
    for name in text.keys().filter(|n| !code.contains_key(*n)) {
        found.push(format!("{name}: a table in SPEC.md, nothing in the code"));
    }
    found
}

fn differing_rows(name: &str, text: &[Row], code: &[Row], found: &mut Vec<String>) {
    for i in 0..text.len().max(code.len()) {
        let (said, is) = (text.get(i), code.get(i));
        if said != is {
            found.push(format!("{name}, row {i}: SPEC.md {said:?}, code {is:?}"));
        }
    }
}

fn code_structs() -> Tables {
    let of = |s: ringmark_format::StructLayout| {
        let rows = s.fields.iter().map(|f| {
            let (offset, size) = (f.offset.to_string(), f.size.to_string());
            vec![offset, size, f.name.to_owned(), f.kind.to_owned()]
        });
        (format!("{}, {} bytes", s.name, s.size), rows.collect())
    };
    layout_table().into_iter().map(of).collect()
}

#[test]
fn structs_are_as_the_code_lays_them_out() {
    let text = named_tables(&spec(), "**`", 4, |_| true);
    assert_eq!(
        differences(&text, &code_structs()),
        Vec::<String>::new(),
        "SPEC.md and code differ"
    );
}

/// Rows of one `numbered!` or plain enum: value, variant, shown name.
fn enum_rows<T: std::fmt::Debug>(values: impl Iterator<Item = (u64, T, &'static str)>) -> Vec<Row> {
    values
        .map(|(n, v, shown)| vec![n.to_string(), format!("{v:?}"), format!("\"{shown}\"")])
        .collect()
}

fn code_enums() -> Tables {
    // Every number is tried, so that a variant missing from the text cannot hide.
    let modes = (0..=u32::from(u16::MAX)).filter_map(|n| Some((n, Mode::from_u32(n)?)));
    let clocks = (0..=u32::from(u16::MAX)).filter_map(|n| Some((n, Clock::from_u32(n)?)));
    [
        (
            "session::Mode",
            enum_rows(modes.map(|(n, m)| (n.into(), m, m.name()))),
        ),
        (
            "session::Clock",
            enum_rows(clocks.map(|(n, c)| (n.into(), c, c.name()))),
        ),
        (
            "schema::Level",
            enum_rows(Level::ALL.iter().map(|v| (*v as u64, *v, v.name()))),
        ),
        (
            "schema::Shape",
            enum_rows(Shape::ALL.iter().map(|v| (*v as u64, *v, v.name()))),
        ),
        (
            "schema::Kind",
            enum_rows(Kind::ALL.iter().map(|v| (*v as u64, *v, v.name()))),
        ),
        (
            "function::TracerKind",
            enum_rows(TracerKind::ALL.iter().map(|v| (*v as u64, *v, v.name()))),
        ),
        (
            "counters::Cause",
            enum_rows(Cause::ALL.iter().map(|v| (*v as u64, *v, v.name()))),
        ),
    ]
    .map(|(name, rows)| (name.to_owned(), rows))
    .into()
}

#[test]
fn enums_have_the_numbers_and_names_of_the_code() {
    let text = named_tables(&spec(), "**Table `", 3, is_enum);
    assert_eq!(differences(&text, &code_enums()), Vec::<String>::new());
}

fn is_enum(table: &str) -> bool {
    table
        .rsplit("::")
        .next()
        .is_some_and(|n| n.starts_with(char::is_uppercase))
}

/// Constants of the modules in the source: the code cannot list them, its text can.
fn source_constants() -> Tables {
    let mut tables = Tables::new();
    for file in [
        "attribute",
        "block",
        "ending",
        "progress",
        "removals",
        "schema",
        "session",
        "slot",
        "stream",
        "switches",
    ] {
        let source = read(&crate_dir().join("src").join(format!("{file}.rs")));
        for (module, name, value) in public_constants(&source) {
            if let Some(module) = module {
                let rows = tables.entry(format!("{file}::{module}")).or_default();
                rows.push(vec![value, name]);
            }
        }
    }
    let types = [
        ("PAD", record::PAD),
        ("BUSY", record::BUSY),
        ("CANCELLED", record::CANCELLED),
        ("TIME_EXTEND", record::TIME_EXTEND),
    ];
    let rows = types.map(|(name, n)| vec![n.to_string(), name.to_owned()]);
    tables.insert("record".to_owned(), rows.into());
    tables
}

#[test]
fn constants_of_modules_are_those_of_the_source() {
    let text = named_tables(&spec(), "**Table `", 2, |name| !is_enum(name));
    let code = source_constants();
    let wanted = [
        "attribute::tag",
        "block::codec",
        "block::kind",
        "ending::how",
        "progress::cause",
        "record",
        "removals::removal",
        "schema::entry_kind",
        "schema::semantic",
        "session::phase",
        "slot::state",
        "stream::ack_level",
        "stream::kind",
        "stream::refusal",
        "switches::turn",
    ];
    assert_eq!(
        code.keys().map(String::as_str).collect::<Vec<_>>(),
        wanted,
        "the source parser missed or found a module"
    );
    assert_eq!(differences(&text, &code), Vec::<String>::new());
}

/// A line of the table "Single numbers" as the code has it.
fn single(name: &str, value: impl Into<u128>) -> Row {
    vec![format!("`{name}`"), value.into().to_string()]
}

fn magic(name: &str, value: &[u8]) -> Row {
    vec![
        format!("`{name}`"),
        format!("\"{}\"", String::from_utf8_lossy(value)),
    ]
}

fn open_span_singles() -> [Row; 10] {
    [
        single("open_span::FRAMES", open_span::FRAMES),
        single("open_span::STACK_BYTES", open_span::STACK_BYTES),
        single("open_span::KEPT_WORDS", open_span::KEPT_WORDS),
        single("open_span::FREE", open_span::FREE),
        single("open_span::CLAIMED", open_span::CLAIMED),
        single("open_span::FILLED", open_span::FILLED),
        single("open_span::LEXICAL", open_span::LEXICAL),
        single("open_span::MOVING", open_span::MOVING),
        single("open_span::RING_WAIT_NS", open_span::RING_WAIT_NS),
        single("open_span::ENDED_SESSION", open_span::ENDED_SESSION),
    ]
}

fn code_singles() -> Vec<Row> {
    let mut singles = other_singles();
    singles.extend(later_singles());
    let place = singles.iter().position(|row| row[0] == "`page::BUSY`");
    let place = place.expect("the numbers of pages");
    singles.splice(place..place, open_span_singles());
    singles
}

fn other_singles() -> Vec<Row> {
    vec![
        single("VERSION_MAJOR", ringmark_format::VERSION_MAJOR),
        single("VERSION_MINOR", ringmark_format::VERSION_MINOR),
        single("ENDIAN_MARK", ringmark_format::ENDIAN_MARK),
        magic("session::RING_FILE_MAGIC", &session::RING_FILE_MAGIC),
        single(
            "session::FLAG_CLOCK_FELL_BACK",
            session::FLAG_CLOCK_FELL_BACK,
        ),
        single("session::SCHEMA_EXTENTS", session::SCHEMA_EXTENTS as u64),
        single("session::SCHEMA_INCOMPLETE", session::SCHEMA_INCOMPLETE),
        single("mailbox::MAILBOX_BYTES", mailbox::MAILBOX_BYTES as u64),
        single("mailbox::REQUEST_OFFSET", mailbox::REQUEST_OFFSET as u64),
        single("mailbox::TEXT_BYTES_MAX", mailbox::TEXT_BYTES_MAX as u64),
        single("mailbox::ANSWER_OFFSET", mailbox::ANSWER_OFFSET as u64),
        single("schema::OPTIONAL", schema::OPTIONAL),
        single("schema::NO_SPAN", schema::NO_SPAN),
        single("page::BUSY", page::BUSY),
        single("page::FIRST_OF_CLAIM", page::FIRST_OF_CLAIM),
        single("page::PAGE_BYTES_MIN", page::PAGE_BYTES_MIN),
        single("page::PAGE_BYTES_MAX", page::PAGE_BYTES_MAX),
        single("page::PAGES_MIN", page::PAGES_MIN),
        single("record::LONG", record::LONG),
        single("record::FIRST_TYPE", record::FIRST_TYPE),
        single("record::LAST_TYPE", record::LAST_TYPE),
        single("record::FUNCTION_BIT", record::FUNCTION_BIT),
        single("record::TIME_EXTEND_WORDS", record::TIME_EXTEND_WORDS),
        single("function::EXIT_BIT", function::EXIT_BIT),
        single("function::LOOSE_BIT", function::LOOSE_BIT),
        single("function::SLOT_BIT", function::SLOT_BIT),
        single("function::LAST_NUMBER", function::LAST_NUMBER),
        single("function::CALLER_BITS", function::CALLER_BITS),
        single("function::TIMED", function::TIMED),
        single("function::DEFAULT", function::DEFAULT),
        single("function::TRACERS_MAX", function::TRACERS_MAX),
        magic("block::BLOCK_MAGIC", &block::BLOCK_MAGIC),
        single("block::SEALED", block::SEALED),
        single("block::CONTENT_BYTES_MAX", block::CONTENT_BYTES_MAX),
        single("ending::CORE", ending::CORE),
        single("ending::MEMORY", ending::MEMORY),
        single("counters::CAUSES", counters::CAUSES as u64),
        single("counters::FINAL", counters::FINAL),
        single("counters::SCHEMA_INCOMPLETE", counters::SCHEMA_INCOMPLETE),
        single("clock::SAMPLE_SPACING_TICKS", clock::SAMPLE_SPACING_TICKS),
        single("switches::SLACK_NS", switches::SLACK_NS),
        single("switches::NO_CPU", switches::NO_CPU),
        single("samples::HAS_KERNEL", samples::HAS_KERNEL),
    ]
}

fn later_singles() -> Vec<Row> {
    vec![
        single("stream::STREAM_MAJOR", stream::STREAM_MAJOR),
        single("stream::STREAM_MINOR", stream::STREAM_MINOR),
        single("stream::PING_EVERY_MS", stream::PING_EVERY_MS),
        single("stream::UNKNOWN_BYTES", stream::UNKNOWN_BYTES),
        single("stream::SILENT_MS", stream::SILENT_MS),
        single("stream::HOST_DRIFT_PPM", stream::HOST_DRIFT_PPM),
        single("stream::UNKNOWN", stream::UNKNOWN),
        single("stream::SCHEMA_ACKED", stream::SCHEMA_ACKED),
        single("stream::AGAIN", stream::AGAIN),
        single("stream::END_MAX_MS", stream::END_MAX_MS),
        single("stream::REFERENCES_WITHIN_MS", stream::REFERENCES_WITHIN_MS),
        single("progress::ALL_SENT", progress::ALL_SENT),
        single("progress::SILENT_FOR_MS", progress::SILENT_FOR_MS),
        magic("store::STORE_MAGIC", &store::STORE_MAGIC),
        single("store::STORE_VERSION", store::STORE_VERSION),
        magic("objects::FOOTER_MAGIC", &objects::FOOTER_MAGIC),
        single("objects::OBJECTS_VERSION", objects::OBJECTS_VERSION),
        single("store::INDEX_TAIL_BYTES", store::INDEX_TAIL_BYTES),
        magic("removals::REMOVALS_MAGIC", &removals::REMOVALS_MAGIC),
        single("removals::REMOVALS_BYTES", removals::REMOVALS_BYTES as u64),
        single("removals::REMOVED_PLACES", removals::REMOVED_PLACES as u64),
        single("removals::REMOVALS_VERSION", removals::REMOVALS_VERSION),
    ]
}

/// The text's numbers in decimal, whatever base it prints them in.
fn text_singles() -> Vec<Row> {
    let rows = table_after(&spec(), "**Single numbers**", 2);
    let decimal = |value: &String| match value.strip_prefix("0x") {
        Some(hex) => u128::from_str_radix(hex, 16).map_or(value.clone(), |n| n.to_string()),
        None => value.clone(),
    };
    rows.iter()
        .map(|r| vec![r[0].clone(), decimal(&r[1])])
        .collect()
}

#[test]
fn single_numbers_are_those_of_the_code() {
    let mut found = Vec::new();
    differing_rows(
        "Single numbers",
        &text_singles(),
        &code_singles(),
        &mut found,
    );
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn no_public_constant_of_the_source_is_left_out() {
    let listed: Vec<String> = code_singles().into_iter().map(|r| r[0].clone()).collect();
    let files = [
        "lib",
        "attribute",
        "block",
        "clock",
        "counters",
        "ending",
        "function",
        "mailbox",
        "open_span",
        "page",
        "record",
        "removals",
        "schema",
        "session",
        "slot",
        "switches",
    ];
    let in_types_table = ["record::PAD", "record::BUSY", "record::CANCELLED"];
    let in_types_table = [&in_types_table[..], &["record::TIME_EXTEND"]].concat();
    for file in files {
        let source = read(&crate_dir().join("src").join(format!("{file}.rs")));
        for (module, name, _) in public_constants(&source) {
            let path = match file {
                "lib" => name.clone(),
                _ => format!("{file}::{name}"),
            };
            let known = module.is_some()
                || in_types_table.contains(&path.as_str())
                || listed.contains(&format!("`{path}`"));
            assert!(
                known,
                "{path}: a public constant that SPEC.md does not name"
            );
        }
    }
}

#[test]
fn the_sizes_of_the_kinds_are_as_the_text_says() {
    let text = spec();
    let sentence = text.split("**Sizes of the kinds**").nth(1).expect("sizes");
    let sentence = sentence.split("\n\n").next().expect("paragraph");
    for kind in Kind::ALL {
        let group = sentence
            .split(';')
            .find(|g| {
                g.split([' ', ',', '.', ':', '\n'])
                    .any(|w| w == kind.name())
            })
            .unwrap_or_else(|| panic!("{}: no size in SPEC.md", kind.name()));
        let before = group.rsplit(':').nth(1).expect("size before the colon");
        let size = before
            .split_whitespace()
            .filter_map(|w| w.parse::<usize>().ok())
            .next_back();
        assert_eq!(size, Some(kind.fixed_bytes()), "{}", kind.name());
    }
}

// Tests of the test: each planted drift must be seen.

fn planted(change: impl FnOnce(&mut Tables)) -> Vec<String> {
    let mut text = code_structs();
    change(&mut text);
    differences(&text, &code_structs())
}

fn page_header(tables: &mut Tables) -> &mut Vec<Row> {
    tables.get_mut("PageHeader, 96 bytes").expect("PageHeader")
}

#[test]
fn planted_drifts_are_seen() {
    assert_eq!(planted(|_| ()), Vec::<String>::new());
    let offset = planted(|t| page_header(t)[2][0] = "20".to_owned());
    assert_eq!(offset.len(), 1);
    assert!(
        offset[0].contains("PageHeader, 96 bytes, row 2"),
        "{offset:?}"
    );
    assert_eq!(planted(|t| page_header(t)[1][1] = "4".to_owned()).len(), 1);
    assert_eq!(
        planted(|t| page_header(t)[1][2] = "ring".to_owned()).len(),
        1
    );
    assert_eq!(
        planted(|t| page_header(t)[1][3] = "u32".to_owned()).len(),
        1
    );
    assert_eq!(planted(|t| drop(page_header(t).pop())).len(), 1);
    let extra = vec!["96".to_owned(); 4];
    assert_eq!(planted(|t| page_header(t).push(extra)).len(), 1);
    assert_eq!(planted(|t| drop(t.remove("Extent, 16 bytes"))).len(), 1);
    let renamed = |t: &mut Tables| drop(t.insert("Ghost, 8 bytes".to_owned(), Vec::new()));
    assert_eq!(planted(renamed).len(), 1);
}

#[test]
fn a_drift_planted_in_the_text_itself_is_seen() {
    let text = spec();
    for (from, to) in [
        ("| 24 | 8 | `mono_base_ns` |", "| 24 | 4 | `mono_base_ns` |"),
        ("**`Slot`, 256 bytes**", "**`Slot`, 248 bytes**"),
        (
            "| 32 | 8 | `first_event` | `u64` |",
            "| 32 | 8 | `first_event` | `u32` |",
        ),
    ] {
        assert!(text.contains(from), "{from}");
        let drifted = named_tables(&text.replace(from, to), "**`", 4, |_| true);
        assert!(!differences(&drifted, &code_structs()).is_empty(), "{to}");
    }
}

/// What the front of the text says otherwise than the code and the headings: its title and its contents.
fn front_differences(text: &str) -> Vec<String> {
    let version = (
        ringmark_format::VERSION_MAJOR,
        ringmark_format::VERSION_MINOR,
    );
    let title = format!("# The Ringmark format, version {}.{}", version.0, version.1);
    let mut found = Vec::new();
    if text.lines().next() != Some(&*title) {
        found.push(format!("title: expected {title}"));
    }
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    let headings: Vec<_> = headings.map(link).collect();
    let (_, contents) = text.split_once("\nContents: ").unwrap_or_default();
    let contents = contents.split("\n\n").next().unwrap_or_default();
    let contents: Vec<_> = contents
        .split(" ·")
        .map(|entry| entry.trim().to_owned())
        .collect();
    if contents != headings {
        found.push(format!("contents: {contents:?}, headings: {headings:?}"));
    }
    found
}

/// The link to a heading.
fn link(heading: &str) -> String {
    format!("[{heading}](#{})", heading.to_lowercase().replace(' ', "-"))
}

#[test]
fn title_and_contents_are_those_of_the_code_and_the_headings() {
    assert_eq!(front_differences(&spec()), [""; 0]);
}

#[test]
fn a_stale_title_and_stale_contents_are_seen() {
    let title = format!("version {}.", ringmark_format::VERSION_MAJOR);
    let last = " ·\n[18 Streams](#18-streams)";
    for (from, to) in [
        (&*title, "version 99."),
        (last, ""),
        ("## 18 Streams", "## 18 Flows"),
    ] {
        let text = spec();
        assert!(text.contains(from), "{from}");
        assert_eq!(
            front_differences(&text.replacen(from, to, 1)).len(),
            1,
            "{from}"
        );
    }
}
