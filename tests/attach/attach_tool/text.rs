//! What stands in a process's sites, as its memory says and not the tool.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A site in the program's file.
const NOPS: [u8; 5] = [0x90; 5];
/// First byte of a call: an open site.
const CALL: u8 = 0xe8;

/// How many sites of its program are there, and how many of them are open. Code that is being written
/// to is no site at rest: it counts as open.
pub(crate) fn sites(pid: u32, program: &Path) -> (usize, usize) {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("a living process");
    let path = program.to_str().expect("a path");
    let memory = File::open(format!("/proc/{pid}/mem")).expect("its memory");
    let file = fs::read(program).expect("a program");
    let (mut all, mut open) = (0, 0);
    // Writable while a batch is written, and never afterwards.
    let is_code = |line: &&str| line.ends_with(path) && line.contains("xp ");
    for line in maps.lines().filter(is_code) {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_written = words[1] != "r-xp";
        let hex = |text| u64::from_str_radix(text, 16).expect("a number");
        let (from, to) = words[0].split_once('-').expect("a range");
        let (from, to, offset) = (hex(from), hex(to), hex(words[2]) as usize);
        let mut found = vec![0; (to - from) as usize];
        memory.read_exact_at(&mut found, from).expect("its code");
        let code = &file[offset..file.len().min(offset + found.len())];
        let mut at = 0;
        while let Some(bytes) = code.get(at..at + NOPS.len()) {
            if bytes != NOPS {
                at += 1;
                continue;
            }
            all += 1;
            open += usize::from(is_written || found[at] == CALL);
            at += NOPS.len();
        }
    }
    (all, open)
}
