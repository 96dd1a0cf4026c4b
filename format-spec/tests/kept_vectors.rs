//! The vectors of the format stay as they were released: what one version wrote, every later one
//! reads. A change of a vector fails here; a new vector is added to the list.

use std::fs;
use std::path::Path;

use ringmark_format::codec::crc32;

/// Traces that were written before the format's version 1.0 was frozen, and those of later versions, by CRC-32.
const KEPT: [(&str, u32); 21] = [
    ("before_start", 0xfceff90b),
    ("damaged", 0x8aba5a3c),
    ("delta_shuffle", 0xc2ef9b98),
    ("described_twice", 0xeabfdf4e),
    ("empty", 0x85aaeb3a),
    ("kinds", 0x3e6a6102),
    ("last_words", 0xfdffe2b9),
    ("lz4_container", 0xce8c0e6d),
    ("merged", 0xd4d2efe3),
    ("no_span", 0xe2af9ac7),
    ("odd_fields", 0xafc01fad),
    ("optional", 0x8cf2dfee),
    ("overwrite", 0x72e8fb33),
    ("reserved_type", 0xbdad6808),
    ("samples", 0x814ab136),
    ("seen_waits", 0xee805737),
    ("switched", 0xf6b027dd),
    ("time_back", 0x1fab830c),
    ("two_rings", 0x0f8bcc9d),
    ("two_sessions", 0x3b1a4745),
    ("unknown", 0xd01f9b59),
];

/// Name and CRC-32 of every trace in `vectors/v1`, in order of names.
fn found() -> Vec<(String, u32)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors/v1");
    let mut found: Vec<_> = fs::read_dir(&folder)
        .expect("vectors/v1")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "rmk"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy();
            (
                name.into_owned(),
                crc32(&fs::read(&path).expect("a vector")),
            )
        })
        .collect();
    found.sort();
    found
}

#[test]
fn no_vector_is_changed_or_removed() {
    let kept: Vec<_> = KEPT.map(|(name, crc)| (name.to_owned(), crc)).into();
    assert_eq!(found(), kept);
}
