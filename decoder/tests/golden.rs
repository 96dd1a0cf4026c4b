//! Dumps of every released version of the format decode to the text beside them, for ever.
//! The text is that of SPEC.md, section 17; a reader in Python makes the same from the same bytes.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use ringmark_decoder::{Dump, DumpBuilder, Event, Kept, Output, Session, Span, Value, Why};
use ringmark_format::align8;
use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::codec::write;
use ringmark_format::counters::{CAUSES, Cause};
use ringmark_format::session::SessionHeader;
use zerocopy::FromBytes;

fn vectors() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec/vectors");
    let mut found: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|e| panic!("{}: {e}", root.display()))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .flat_map(|version| std::fs::read_dir(version).expect("a version's vectors"))
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "rmk"))
        .collect();
    found.sort();
    found
}

fn decode(path: &Path) -> Dump {
    let mut builder = DumpBuilder::new();
    let file = std::fs::File::open(path).expect("the vector");
    builder
        .read(&path.display().to_string(), file)
        .unwrap_or_else(|damage| panic!("{}: {damage}", path.display()));
    builder.finish()
}

fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", escaped(bytes, "\"\\"))
}

fn escaped(bytes: &[u8], special: &str) -> String {
    let mut out = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                c if special.contains(c) => out.extend(['\\', c]),
                ' '..='~' => out.push(c),
                c => write!(out, "\\u{{{:x}}}", u32::from(c)).expect("a String"),
            }
        }
        for byte in chunk.invalid() {
            write!(out, "\\x{byte:02x}").expect("a String");
        }
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold("0x".to_owned(), |text, b| format!("{text}{b:02x}"))
}

fn shown(value: Value<'_>) -> String {
    match value {
        Value::U64(n) => n.to_string(),
        Value::I64(n) => n.to_string(),
        Value::U128(n) => n.to_string(),
        Value::I128(n) => n.to_string(),
        Value::F32(n) => format!("{n:?}"),
        Value::F64(n) => format!("{n:?}"),
        Value::Bool(b) => b.to_string(),
        Value::Char(c) => quoted(c.to_string().as_bytes()),
        Value::Str(bytes) => quoted(bytes),
        Value::Bytes(bytes) => hex(bytes),
        Value::Array(..) => {
            let items: Vec<String> = value.items().map(shown).collect();
            format!("[{}]", items.join(","))
        }
        Value::None => "none".to_owned(),
        Value::Missing => "<invalid>".to_owned(),
    }
}

fn event_line(event: &Event<'_>) -> String {
    let (session, ring) = (event.session.uuid, event.ring());
    let mut line = format!("{session} {ring} {} {} ", event.seq, event.wall_ns());
    if !event.ty.known {
        return line + &format!("#{} payload={}", event.ty.id, hex(&event.payload));
    }
    line += &escaped(&event.ty.name, "");
    for field in event.ty.fields.iter() {
        let value = shown(field.value(&event.payload));
        line += &format!(" {}={value}", escaped(&field.name, ""));
    }
    line
}

fn lost_lines(session: &Session, lines: &mut Vec<String>) {
    let Some(counters) = &session.counters else {
        return;
    };
    let mut put = |slot: &str, lost: &[u64; CAUSES]| {
        for (cause, count) in Cause::ALL.iter().zip(lost).filter(|(_, n)| **n > 0) {
            lines.push(format!("# lost {} {slot} {cause:?} {count}", session.uuid));
        }
    };
    put("-", &counters.header.lost);
    for (slot, entry) in &counters.slots {
        put(&slot.to_string(), &entry.lost);
    }
}

/// What was open when a session was copied, and how it ended.
fn end_lines(dump: &Dump, session: &Session, lines: &mut Vec<String>) {
    let uuid = session.uuid;
    let threads = dump.open_spans();
    for thread in threads.iter().filter(|t| t.session.uuid == uuid) {
        for span in &thread.spans {
            let wall_ns = session.clock.wall_of(span.since, span.since_ns);
            let name = escaped(&span.ty.name, "");
            let mut line = format!("# open {uuid} {} {wall_ns} {name}", thread.ring);
            for (field, kept) in span.args() {
                let value = match kept {
                    Kept::Whole(value) => shown(value),
                    Kept::Cut(_) | Kept::Not => "<invalid>".to_owned(),
                };
                line += &format!(" {}={value}", escaped(&field.name, ""));
            }
            lines.push(line);
        }
        if thread.deeper > 0 {
            lines.push(format!("# deeper {uuid} {} {}", thread.ring, thread.deeper));
        }
    }
    if let Some(ending) = session.ending {
        let block = ending.block();
        let (how, code, flags) = (block.how, block.code, block.flags);
        lines.push(format!("# ended {uuid} {how} {code} {flags}"));
    }
}

/// What threads did while spans lasted, where there are switches.
fn did_lines(dump: &Dump, session: &Session, lines: &mut Vec<String>) {
    let spans = dump.events().filter_map(|item| match item {
        Output::Event(event) if event.session.uuid == session.uuid => Span::of_event(&event),
        _ => None,
    });
    let mut spans: Vec<_> = spans.filter(|_| session.has_switches()).collect();
    spans.sort_by_key(|span| (span.end.ring().0, span.end.seq));
    for span in spans {
        let did = match span.times {
            Some(t) => format!("{} {} {}", t.running_ns, t.ready_ns, t.waiting_ns),
            None => "unknown".to_owned(),
        };
        let (ring, seq) = (span.end.ring(), span.end.seq);
        lines.push(format!("# did {} {ring} {seq} {did}", session.uuid));
    }
}

/// Where threads ran, and how many samples of that are lost.
fn ran_lines(session: &Session, lines: &mut Vec<String>) {
    let uuid = session.uuid;
    for sample in session.samples() {
        let text = sample.stack.functions().collect::<Vec<_>>().join(&b'\n');
        let (tid, at, ns, text) = (sample.tid, sample.mono_ns, sample.ns, quoted(&text));
        lines.push(format!("# ran {uuid} {tid} {at} {ns} {text}"));
    }
    if session.samples_lost() > 0 {
        lines.push(format!("# samples lost {uuid} {}", session.samples_lost()));
    }
}

/// Every line but the one that counts damage.
fn lines(dump: &Dump) -> Vec<String> {
    let mut lines = Vec::new();
    let mut missing: BTreeMap<(String, u32), u64> = BTreeMap::new();
    for item in dump.events() {
        match item {
            Output::Event(event) => lines.push(event_line(&event)),
            Output::Lost(lost) if matches!(lost.loss.why, Why::Lost(_)) => {}
            Output::Lost(lost) => {
                let slot = lost.page.map_or(0, |page| page.header.slot);
                let key = (lost.session.uuid.to_string(), slot);
                *missing.entry(key).or_default() += lost.loss.count;
            }
        }
    }
    let mut sessions: Vec<&Session> = dump.sessions.iter().collect();
    sessions.sort_by_key(|s| s.uuid);
    sessions.iter().for_each(|s| lost_lines(s, &mut lines));
    for ((session, slot), count) in missing {
        lines.push(format!("# missing {session} {slot} {count}"));
    }
    for session in &sessions {
        end_lines(dump, session, &mut lines);
        did_lines(dump, session, &mut lines);
        for (tid, from, to, text) in session.seen_waits() {
            let (uuid, text) = (session.uuid, quoted(text));
            lines.push(format!("# saw {uuid} {tid} {from} {to} {text}"));
        }
        ran_lines(session, &mut lines);
    }
    let pages = || dump.sessions.iter().flat_map(|s| &s.slots);
    let pages = || pages().flat_map(|slot| &slot.pages);
    let cancelled: u64 = pages().map(|p| p.summary.cancelled).sum();
    let uncommitted: u64 = pages().map(|p| p.summary.uncommitted).sum();
    lines.push(format!("# discarded {cancelled}"));
    lines.push(format!("# uncommitted {uncommitted}"));
    lines
}

/// Lines in which decoder and text differ; of damage only whether there is any.
fn differences(dump: &Dump, text: &str) -> Vec<String> {
    let (damaged, expected): (Vec<&str>, Vec<&str>) =
        text.lines().partition(|l| l.starts_with("# damaged "));
    let got = lines(dump);
    let mut found = Vec::new();
    for i in 0..got.len().max(expected.len()) {
        let (got, expected) = (got.get(i).map(String::as_str), expected.get(i).copied());
        if got != expected {
            found.push(format!(
                "line {i}:\n  got      {got:?}\n  expected {expected:?}"
            ));
        }
    }
    let clean = damaged == ["# damaged 0"];
    if clean != dump.damage.is_empty() {
        found.push(format!("{damaged:?}, decoder found {:?}", dump.damage));
    }
    found
}

#[test]
fn every_vector_decodes_to_its_text() {
    let all = vectors();
    assert!(all.len() >= 15, "{} vectors", all.len());
    let mut wrong = Vec::new();
    for path in all {
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(path.with_extension("txt")).expect("its text");
        let found = differences(&decode(&path), &text);
        if !found.is_empty() {
            wrong.push(format!("{name}:\n{}", found.join("\n")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What its text does not say: the spans of each record.
#[test]
fn a_record_in_no_span_is_in_none_whatever_its_thread_is_in() {
    let dump = decode(&vectors().swap_remove(0).with_file_name("no_span.rmk"));
    let spans = dump.events().filter_map(|item| match item {
        Output::Event(event) => Some((event.span, event.parent)),
        Output::Lost(_) => None,
    });
    let expected = [
        (Some(7), None), // made outside of any span
        (Some(7), None), // entered
        (Some(9), None), // made there, without a parent
        (Some(7), None), // an event that names no span
        (None, None),    // an event in no span
    ];
    assert_eq!(spans.collect::<Vec<_>>(), expected);
}

#[test]
fn a_wrong_text_is_seen() {
    let path = vectors().swap_remove(0).with_file_name("two_sessions.rmk");
    let text = std::fs::read_to_string(path.with_extension("txt")).expect("its text");
    let dump = decode(&path);
    for (from, to) in [
        ("# discarded 0", "# discarded 1"),
        ("# damaged 0", "# damaged 1"),
    ] {
        assert!(text.contains(from), "{from}");
        let before = differences(&dump, &text).len();
        assert_eq!(
            differences(&dump, &text.replace(from, to)).len(),
            before + 1
        );
    }
}

/// A vector as a writer of another version of the format would have made it: the SESSION blocks
/// changed, and behind each block one of a kind that no version knows.
fn of_version(bytes: &[u8], change: fn(&mut SessionHeader)) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Ok((header, behind)) = BlockHeader::read_from_prefix(rest) {
        let stored = header.stored_bytes as usize;
        let mut content = behind[..stored].to_vec();
        if header.kind == kind::SESSION {
            let (session, _) = SessionHeader::mut_from_prefix(&mut content).expect("a session");
            change(session);
            write::block(&mut out, header, &content).expect("a block");
        } else {
            out.extend_from_slice(&rest[..BlockHeader::BYTES + align8(stored)]);
        }
        let new = write::header(40_000, ringmark_format::Uuid(header.session));
        write::block(&mut out, new, b"of a later version").expect("a block");
        rest = &behind[align8(stored)..];
    }
    out
}

/// Every vector without damage, with its bytes.
fn sound_vectors() -> Vec<(PathBuf, Vec<u8>)> {
    let all = vectors().into_iter().map(|path| {
        let bytes = std::fs::read(&path).expect("the vector");
        (path, bytes)
    });
    let sound = |path: &Path| decode(path).damage.is_empty();
    all.filter(|(path, _)| sound(path)).collect()
}

fn read(bytes: &[u8]) -> Result<Dump, String> {
    let mut builder = DumpBuilder::new();
    let read = builder.read("vector", bytes);
    read.map(|()| builder.finish()).map_err(|e| e.to_string())
}

#[test]
fn a_newer_minor_with_blocks_of_unknown_kinds_decodes_to_the_same() {
    let all = sound_vectors();
    assert!(all.len() >= 10, "{} vectors", all.len());
    for (path, bytes) in all {
        let newer = of_version(&bytes, |session| {
            session.version_minor = 99;
            session.flags |= 1 << 31;
            session.reserved = [u64::MAX; 13];
        });
        let dump = read(&newer).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(dump.damage.is_empty() && dump.unknown_blocks > 0);
        let found = dump.verify();
        let told = format!("unknown_blocks: {}: ", dump.unknown_blocks);
        assert!(found.to_string().contains(&told), "{found}");
        let told = format!("\"unknown_blocks\":{},", dump.unknown_blocks);
        assert!(found.to_json().contains(&told), "{}", found.to_json());
        assert_eq!(lines(&dump), lines(&decode(&path)), "{}", path.display());
    }
}

#[test]
fn a_newer_major_and_the_other_byte_order_are_refused_by_name() {
    let all = sound_vectors().into_iter();
    // The others have their sessions in containers.
    let plain = all.filter(|(_, bytes)| {
        BlockHeader::read_from_prefix(bytes).is_ok_and(|(header, _)| header.kind == kind::SESSION)
    });
    let plain: Vec<_> = plain.collect();
    assert!(plain.len() >= 8, "{} vectors", plain.len());
    for (path, bytes) in plain {
        let newer = of_version(&bytes, |session| session.version_major = 2);
        let foreign = of_version(&bytes, |session| {
            session.endian = session.endian.swap_bytes();
        });
        for (bytes, said) in [
            (newer, "format version 2, this decoder reads up to 1"),
            (foreign, "written big-endian, expected little-endian"),
        ] {
            let error = read(&bytes).expect_err(said);
            assert!(error.contains(said), "{}: {error}", path.display());
        }
    }
}
