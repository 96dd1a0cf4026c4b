//! Who has the lock of a file that somebody waits for, as `/proc/locks` lists them.

use std::fs;

/// The process that has the lock of that kind which another process waits for, by their numbers and the file's; `None`: the list does
/// not say. A lock of an open file, and not of a process, has no owner there.
pub(crate) fn owner(kind: &str, waiting: u32, inode: u64) -> Option<u32> {
    owner_in(
        &fs::read_to_string("/proc/locks").ok()?,
        kind,
        waiting,
        inode,
    )
}

/// A lock is a line; those who wait for it follow with its number and an arrow:
/// `1: FLOCK  ADVISORY  WRITE 4711 fe:00:42 0 EOF`, `1: -> FLOCK  ADVISORY  WRITE 4712 fe:00:42 0 EOF`.
fn owner_in(list: &str, kind: &str, waiting: u32, inode: u64) -> Option<u32> {
    let mut owner = None;
    for line in list.lines() {
        let words: Vec<_> = line.split_ascii_whitespace().collect();
        let (is_waiting, rest) = match words.get(1..)? {
            ["->", rest @ ..] => (true, rest),
            rest => (false, rest),
        };
        let [its_kind, _, _, process, file, ..] = rest else {
            continue;
        };
        let process = process.parse::<u32>().ok();
        if !is_waiting {
            owner = process;
            continue;
        }
        let of_file = file.rsplit(':').next().and_then(|word| word.parse().ok());
        if *its_kind == kind && process == Some(waiting) && of_file == Some(inode) {
            return owner.filter(|owner| *owner != 0);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::owner_in;

    const LIST: &str = "\
1: FLOCK  ADVISORY  WRITE 100 fe:00:42 0 EOF
1: -> FLOCK  ADVISORY  WRITE 200 fe:00:42 0 EOF
1: -> FLOCK  ADVISORY  WRITE 300 fe:00:42 0 EOF
2: OFDLCK ADVISORY  WRITE -1 fe:00:43 0 7
2: -> OFDLCK ADVISORY  WRITE 200 fe:00:43 0 7
3: POSIX  ADVISORY  READ 0 fe:00:44 0 7
3: -> POSIX  ADVISORY  WRITE 300 fe:00:44 0 7
";

    #[test]
    fn the_lock_above_the_one_who_waits() {
        assert_eq!(owner_in(LIST, "FLOCK", 200, 42), Some(100));
        assert_eq!(owner_in(LIST, "FLOCK", 300, 42), Some(100));
        // Of an open file; of a process that is not to be seen from here.
        assert_eq!(owner_in(LIST, "POSIX", 200, 43), None);
        assert_eq!(owner_in(LIST, "POSIX", 300, 44), None);
        assert_eq!(owner_in(LIST, "FLOCK", 100, 42), None, "it has it");
        assert_eq!(owner_in(LIST, "POSIX", 200, 42), None, "of another kind");
        assert_eq!(owner_in("", "FLOCK", 1, 1), None);
    }
}
