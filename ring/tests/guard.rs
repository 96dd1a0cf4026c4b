//! The guard: a mapping whose file was truncated reads as zeros, says so, and takes stores.
#![cfg(not(loom))]

use std::fs::{self, File};
use std::sync::atomic::Ordering::Relaxed;

use ringmark_ring::{Mapping, guard};

const BYTES: u64 = 64 << 10;

fn file(name: &str) -> File {
    let path = std::env::temp_dir().join(format!("ringmark-guard-{}-{name}", std::process::id()));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path);
    fs::remove_file(&path).unwrap();
    let file = file.unwrap();
    file.set_len(BYTES).unwrap();
    file
}

#[test]
fn pages_that_are_gone_are_replaced_and_told() {
    let before = Mapping::writable(&file("before"), 0, BYTES as usize).unwrap();
    assert!(guard::install());
    assert!(guard::install(), "twice is once");
    assert!(!before.is_broken(), "made before the guard: not guarded");

    let (cut, whole) = (file("cut"), file("whole"));
    let map = Mapping::writable(&cut, 0, BYTES as usize).unwrap();
    let other = Mapping::writable(&whole, 0, BYTES as usize).unwrap();
    let words = map.words(0, BYTES).unwrap();
    words.iter().for_each(|word| word.store(7, Relaxed));
    cut.set_len(4096).unwrap();
    assert!(!map.is_broken(), "nothing was touched yet");
    assert_eq!(words[0].load(Relaxed), 7);
    assert_eq!(words[4096 / 8].load(Relaxed), 0);
    assert!(map.is_broken());
    for word in &words[4096 / 8..] {
        word.store(9, Relaxed);
        assert_eq!(word.load(Relaxed), 9);
    }
    other.words(0, BYTES).unwrap()[1].store(1, Relaxed);
    assert!(!other.is_broken(), "another mapping");
    drop(map);

    let again = Mapping::read_only(&whole, 0, BYTES as usize).unwrap();
    assert!(!again.is_broken(), "the region is used again, unbroken");
    whole.set_len(0).unwrap();
    assert_eq!(again.words(8, 8).unwrap()[0].load(Relaxed), 0);
    assert!(again.is_broken());
}
