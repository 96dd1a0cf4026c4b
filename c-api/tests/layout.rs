//! The committed header is the one that the crates would write. `RINGMARK_BLESS=1` writes it.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

#[test]
fn committed_header_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/ringmark_layout.h");
    let fresh = ringmark_c::layout::text();
    if std::env::var("RINGMARK_BLESS").is_ok_and(|v| v == "1") {
        fs::write(&path, &fresh).expect("the header can be written");
    }
    let committed = fs::read_to_string(&path).expect("the header");
    assert_eq!(
        committed,
        fresh,
        "{}: RINGMARK_BLESS=1 writes it anew",
        path.display()
    );
}
