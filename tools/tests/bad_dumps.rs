//! Bad input: files that are no dump, or a damaged one. Exit code, and what is told: file, place,
//! found, expected.

use crate::common;

use std::fs;
use std::os::unix::net::UnixListener;
use std::process::Command;

use common::{Stage, expect, first, first_page, places, reseal};
use ringmark_format::block::kind;
use ringmark_format::page::PageHeader;
use ringmark_tests::Running;

/// A stage with a sound dump `good.rmk` of one thread and two sealed pages at least, and its bytes.
fn stage() -> (Stage, Vec<u8>) {
    let stage = Stage::new("bad-dumps");
    let program = common::traced_program();
    let mut command = stage.ringmark(&[
        "record", "-o", "good.rmk", "--", &program, "1", "900", "mix",
    ]);
    // Everything fits into the ring: nothing is lost however late the recorder comes.
    command.env("RINGMARK", "mode=discard,keep=always,ring=256K,page=4K");
    let _ = ringmark_tests::run(&mut command, common::LIMIT)
        .unwrap()
        .expect_code(0);
    let bytes = fs::read(stage.path("good.rmk")).unwrap();
    assert!(
        places(&bytes)
            .iter()
            .filter(|p| p.kind == kind::PAGE)
            .count()
            > 2
    );
    (stage, bytes)
}

#[test]
fn the_sound_dump_is_fine() {
    let (stage, _) = stage();
    let found = stage.run(&["verify", "good.rmk"]).expect_code(0);
    assert!(
        found.stdout_text().contains("events: 900\n"),
        "{}",
        found.stdout_text()
    );
    assert!(found.stdout_text().contains("complete: yes"));
    assert_eq!(found.stderr_text(), "");
}

#[test]
fn what_is_no_dump_is_named() {
    let stage = Stage::new("no-dump");
    fs::copy("/proc/self/exe", stage.path("elf")).unwrap();
    stage.write("empty", b"");
    stage.write("short", b"RMKB\x01");
    stage.write(
        "text",
        b"once upon a time there was a file that was no dump at all, and it was read\n",
    );
    stage.write("zeros", &[0; 4096]);
    for (file, text) in [
        ("elf", "expected \"RMKB\" (looks like an ELF file)"),
        ("empty", "empty, expected a trace file"),
        ("short", "truncated block header: 5 bytes, expected 64"),
        ("text", "looks like text"),
        ("zeros", "looks like zeros"),
    ] {
        for command in ["cat", "verify", "list", "report", "events"] {
            let found = expect(stage.run(&[command, file]), 3, text);
            assert!(
                found
                    .stderr_text()
                    .starts_with(&format!("ringmark: {file}: "))
            );
            assert_eq!(found.stdout_text(), "");
        }
    }
}

#[test]
fn what_cannot_be_opened_is_named() {
    let stage = Stage::new("cannot-open");
    let _socket = UnixListener::bind(stage.path("socket")).unwrap();
    fs::create_dir(stage.path("directory")).unwrap();
    fs::create_dir(stage.path("store")).unwrap();
    stage.write("store/store.id", &[7; 16]);
    for (file, text) in [
        (
            "store",
            "is a store in which nothing is yet, expected one with trace files",
        ),
        (
            "directory",
            "is a directory without trace files, expected a trace file or a store",
        ),
        ("socket", "is a socket, expected a trace file"),
        ("/dev/zero", "is a device, expected a trace file"),
        ("missing", "cannot be opened: No such file or directory"),
    ] {
        expect(
            stage.run(&["cat", file]),
            3,
            &format!("ringmark: {file}: {text}"),
        );
    }
    expect(stage.run(&["cat"]), 3, "ringmark.rmk: cannot be opened");
}

#[test]
fn a_ring_file_is_no_dump() {
    let stage = Stage::new("ring-file");
    let traced = stage.start("mode=overwrite", &["1", "1", "0", "hold=10000"]);
    let ring = stage.ring_file(traced.id()).unwrap();
    expect(
        stage.run(&["cat", &ring.display().to_string()]),
        3,
        "looks like a ring file",
    );
}

#[test]
fn a_fifo_and_standard_input_are_read() {
    let (stage, _) = stage();
    let _ = ringmark_tests::run(
        Command::new("mkfifo").arg(stage.path("fifo")),
        common::LIMIT,
    );
    let mut shell = stage.command("sh");
    let _writer = Running::start(shell.args(["-c", "cat good.rmk > fifo"])).unwrap();
    let found = stage.run(&["verify", "fifo"]).expect_code(0);
    assert!(found.stdout_text().contains("events: 900"));
    let mut shell = stage.command("sh");
    shell.args([
        "-c",
        "cat good.rmk | \"$0\" verify -",
        env!("CARGO_BIN_EXE_ringmark"),
    ]);
    let found = ringmark_tests::run(&mut shell, common::LIMIT)
        .unwrap()
        .expect_code(0);
    assert!(found.stdout_text().contains("events: 900"));
}

#[test]
fn newer_major_and_foreign_endian_are_refused() {
    let (stage, good) = stage();
    let session = first(&good, kind::SESSION);
    let mut newer = good.clone();
    newer[session.content() + 8..][..2].copy_from_slice(&9_u16.to_le_bytes());
    reseal(&mut newer, session);
    stage.write("newer", &newer);
    expect(
        stage.run(&["cat", "newer"]),
        3,
        "format version 9, this decoder reads up to 1",
    );
    let mut foreign = good.clone();
    foreign[session.content() + 12..][..4].reverse();
    reseal(&mut foreign, session);
    stage.write("foreign", &foreign);
    expect(
        stage.run(&["cat", "foreign"]),
        3,
        "big-endian, expected little-endian",
    );
}

#[test]
fn a_cut_dump_gives_what_is_whole() {
    let (stage, good) = stage();
    let pages: Vec<_> = places(&good)
        .into_iter()
        .filter(|p| p.kind == kind::PAGE)
        .collect();
    stage.write("cut", &good[..pages[2].content() + 100]);
    let found = expect(stage.run(&["cat", "cut"]), 1, "truncated block content");
    assert!(
        found.stderr_text().contains("2 complete pages were read"),
        "{}",
        found.stderr_text()
    );
    stage.write("one", &good[..pages[1].content() + 100]);
    let one = expect(stage.run(&["cat", "one"]), 1, "truncated block content");
    let told = one.stderr_text();
    assert!(told.contains("1 complete page was read"), "{told}");
    assert!(
        found
            .stdout_text()
            .contains("emitter.tick thread=0 seq=0\n")
    );
}

#[test]
fn a_flipped_bit_is_found_and_its_events_counted() {
    let (stage, mut bytes) = stage();
    let page = first_page(&bytes);
    bytes[page.content() + 200] ^= 1;
    stage.write("flipped", &bytes);
    let found = expect(
        stage.run(&["cat", "flipped"]),
        1,
        "crc32 of the block content stored ",
    );
    let told = found.stderr_text();
    let place = format!("offset {}: page 0 of ring ", page.offset);
    assert!(told.contains(&place), "{told}");
    assert!(
        found
            .stdout_text()
            .contains("events: not in this trace file"),
        "{}",
        found.stdout_text()
    );
    let verified = stage.run(&["verify", "flipped"]).expect_code(1);
    assert!(verified.stdout_text().contains("damaged: 1"));
}

#[test]
fn lz4_that_is_malformed_or_expands_too_far() {
    let (stage, _) = stage();
    let program = common::traced_program();
    let traced = ["1", "900", "mix"];
    let mut command = stage.ringmark(&[
        "record",
        "-o",
        "lz4.rmk",
        "--compress",
        "lz4",
        "--",
        &program,
    ]);
    let _ = ringmark_tests::run(command.args(traced), common::LIMIT)
        .unwrap()
        .expect_code(0);
    let good = fs::read(stage.path("lz4.rmk")).unwrap();
    let _ = stage.run(&["verify", "lz4.rmk"]).expect_code(0);
    let container = first(&good, kind::CONTAINER);
    let mut malformed = good.clone();
    malformed[container.content()..][..64].fill(0xFF);
    reseal(&mut malformed, container);
    stage.write("malformed", &malformed);
    expect(
        stage.run(&["cat", "malformed"]),
        1,
        "LZ4 malformed, or expanding past the declared size",
    );
    let mut small = good.clone();
    small[container.offset + 52..][..4].copy_from_slice(&64_u32.to_le_bytes());
    reseal(&mut small, container);
    stage.write("small", &small);
    expect(
        stage.run(&["cat", "small"]),
        1,
        "LZ4 malformed, or expanding past the declared size",
    );
    let mut huge = good.clone();
    huge[container.offset + 52..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    reseal(&mut huge, container);
    stage.write("huge", &huge);
    expect(stage.run(&["cat", "huge"]), 1, "4294967295");
}

/// Writes `word` over the first record header of the first page.
fn with_first_record(bytes: &[u8], word: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let page = first_page(&bytes);
    bytes[page.first_record()..][..8].copy_from_slice(&word.to_le_bytes());
    reseal(&mut bytes, page);
    bytes
}

#[test]
fn records_that_cannot_be() {
    let (stage, good) = stage();
    let place = format!("record at offset {} of the page", PageHeader::BYTES);
    // Zero inside a sealed page; a length in the next word that no page holds.
    stage.write("zero", &with_first_record(&good, 0));
    expect(stage.run(&["cat", "zero"]), 1, &place);
    let mut long = with_first_record(&good, 0xFF00_0020_0000_0000);
    let page = first_page(&long);
    long[page.first_record() + 8..][..8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
    reseal(&mut long, page);
    stage.write("long", &long);
    expect(stage.run(&["cat", "long"]), 1, &place);
}

#[test]
fn an_extent_past_the_page() {
    let (stage, mut bytes) = stage();
    let page = first_page(&bytes);
    bytes[page.offset + 40..][..4].copy_from_slice(&(1_u32 << 20).to_le_bytes());
    reseal(&mut bytes, page);
    stage.write("extent", &bytes);
    expect(stage.run(&["cat", "extent"]), 1, "extent");
}

#[test]
fn repeated_pages_are_dropped_conflicts_told() {
    let (stage, good) = stage();
    let both = stage
        .run(&["verify", "good.rmk", "good.rmk"])
        .expect_code(0);
    assert!(
        both.stdout_text().contains("events: 900\n"),
        "{}",
        both.stdout_text()
    );
    assert!(
        !both.stdout_text().contains("repeated: 0\n"),
        "{}",
        both.stdout_text()
    );
    let mut other = good.clone();
    let page = first_page(&other);
    // The payload of the first record: still a sound page.
    other[page.first_record() + 8] ^= 1;
    reseal(&mut other, page);
    stage.write("other", &other);
    let found = expect(
        stage.run(&["cat", "good.rmk", "other"]),
        1,
        &format!(
            "two copies of the page differ at offset {}",
            PageHeader::BYTES + 8
        ),
    );
    assert!(found.stderr_text().contains("ringmark: other: "));
}

#[test]
fn a_gap_says_how_many_are_missing() {
    let (stage, good) = stage();
    let page = first_page(&good);
    let mut bytes = good[..page.offset].to_vec();
    bytes.extend_from_slice(&good[page.end()..]);
    stage.write("gap", &bytes);
    let found = stage.run(&["cat", "gap"]).expect_code(1);
    let first = found
        .stdout_text()
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned();
    assert!(
        first.contains(" LOST ") && first.contains("events: not in this trace file"),
        "{first}"
    );
}

#[test]
fn unknown_types_are_shown_raw() {
    let (stage, good) = stage();
    let word = first_page(&good).first_record();
    let header = u64::from_le_bytes(good[word..][..8].try_into().unwrap());
    let unknown = header & !(0xFF_FFFF << 32) | 0x12345 << 32;
    stage.write("unknown", &with_first_record(&good, unknown));
    let found = stage.run(&["cat", "unknown", "-n", "1"]);
    assert!(
        found.stdout_text().contains("type#74565 raw="),
        "{}",
        found.stdout_text()
    );
}

#[test]
fn control_bytes_of_traces_never_reach_a_terminal() {
    let (stage, _) = stage();
    for arguments in [
        &["cat", "good.rmk"][..],
        &["cat", "good.rmk", "--json"],
        &["events", "good.rmk"],
        &["list", "-v", "good.rmk"],
    ] {
        let found = stage.run(arguments).expect_code(0);
        let bad = found
            .stdout
            .iter()
            .find(|b| **b < b' ' && **b != b'\n' || **b == 0x7f);
        assert_eq!(bad, None, "{arguments:?}");
    }
    let text = stage
        .run(&["cat", "good.rmk", "--name", "emitter.text", "-n", "1"])
        .stdout_text();
    assert!(
        text.contains(r#"text="tab\there \x1b[31mred\x07 ümlaut \"quoted\" \\""#),
        "{text}"
    );
}

#[test]
fn a_file_name_cannot_drive_a_terminal_either() {
    let stage = Stage::new("file-name");
    let found = expect(
        stage.run(&["cat", "no\x1b[31m such"]),
        3,
        r"no\x1b[31m such",
    );
    assert!(!found.stderr.contains(&0x1b));
}
