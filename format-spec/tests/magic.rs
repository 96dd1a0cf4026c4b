//! The rules in `magic` make `file` name ring files and dumps with version and mode.

use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_format::block::{BLOCK_MAGIC, BlockHeader, codec, kind};
use ringmark_format::session::{Clock, Mode, RING_FILE_MAGIC, SessionHeader};
use ringmark_format::{ENDIAN_MARK, VERSION_MAJOR, VERSION_MINOR};
use zerocopy::{FromZeros, IntoBytes};

fn session(mode: Mode, clock: Clock) -> SessionHeader {
    SessionHeader {
        magic: RING_FILE_MAGIC,
        version_major: VERSION_MAJOR,
        version_minor: VERSION_MINOR,
        endian: ENDIAN_MARK,
        mode: mode as u32,
        clock: clock as u32,
        slots: 64,
        pid: 4711,
        ..SessionHeader::new_zeroed()
    }
}

fn block(kind: u16, codec: u8) -> BlockHeader {
    BlockHeader {
        magic: BLOCK_MAGIC,
        kind,
        codec,
        ..BlockHeader::new_zeroed()
    }
}

/// What `file` says of these bytes.
fn file_says(name: &str, bytes: &[u8]) -> String {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = dir.join(name);
    std::fs::write(&path, bytes).expect("a temporary file");
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("magic");
    let run = Command::new("file")
        .args(["--brief", "-m"])
        .arg(rules)
        .arg(&path)
        .output()
        .expect("file(1) is not installed: apt-get install file, dnf install file");
    let said = String::from_utf8_lossy(&run.stdout).trim().to_owned();
    let complaints = String::from_utf8_lossy(&run.stderr);
    assert!(
        run.status.success() && complaints.is_empty(),
        "{said} {complaints}"
    );
    said
}

#[test]
fn ring_files_are_named() {
    let version = format!("{VERSION_MAJOR}.{VERSION_MINOR}");
    let mut bytes = session(Mode::Discard, Clock::Tsc).as_bytes().to_vec();
    bytes.resize(4096, 0);
    assert_eq!(
        file_says("discard.ring", &bytes),
        format!("Ringmark ring file, version {version}, discard, clock tsc, 64 slots, pid 4711")
    );
    let bytes = session(Mode::Overwrite, Clock::None);
    assert_eq!(
        file_says("overwrite.ring", bytes.as_bytes()),
        format!("Ringmark ring file, version {version}, overwrite, no clock, 64 slots, pid 4711")
    );
    let mut foreign = session(Mode::Discard, Clock::Tsc);
    foreign.endian = ENDIAN_MARK.swap_bytes();
    assert_eq!(
        file_says("foreign.ring", foreign.as_bytes()),
        "Ringmark ring file, big-endian"
    );
}

#[test]
fn dumps_are_named() {
    let version = format!("{VERSION_MAJOR}.{VERSION_MINOR}");
    for mode in [Mode::Discard, Mode::Overwrite] {
        let mut bytes = block(kind::SESSION, codec::NONE).as_bytes().to_vec();
        bytes.extend_from_slice(session(mode, Clock::Tsc).as_bytes());
        let expected = format!(
            "Ringmark dump, version {version}, {}, pid 4711",
            mode.name()
        );
        assert_eq!(file_says(&format!("{}.rmk", mode.name()), &bytes), expected);
    }
    let container = block(kind::CONTAINER, codec::DELTA_SHUFFLE_LZ4);
    assert_eq!(
        file_says("container.rmk", container.as_bytes()),
        "Ringmark dump, starts with a container, delta-shuffle LZ4"
    );
}

#[test]
fn other_files_are_not_named() {
    let said = file_says("other", b"RMK, but not a block, RINGMARK elsewhere\n");
    assert!(!said.contains("Ringmark"), "{said}");
}
