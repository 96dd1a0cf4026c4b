//! What the command line shows of this crate: settings and limits in the guide's reference, and which
//! version of it a program or library holds.

pub use super::keys::{KEYS, Key};
pub use super::variables::{VARIABLES, Variable};

/// Most bytes that the session of a program takes by default.
#[must_use]
pub fn session_bytes() -> u64 {
    super::Options::default().session_bytes()
}

/// What stands before the version in each file that holds this crate.
const MARK: &str = "ringmark library ";
/// The mark, the version, and an end: another text may follow at once in a file.
const MARKED: &str = concat!("ringmark library ", env!("CARGO_PKG_VERSION"), "\0");

/// The version of this crate.
#[must_use]
pub fn version() -> &'static str {
    // Read through a value that the compiler does not see through: the mark stays in the file.
    let marked = core::hint::black_box(MARKED).trim_end_matches('\0');
    marked.trim_start_matches(MARK)
}

/// The version of this crate that a program or library holds, from the bytes of its file.
#[must_use]
pub fn version_in(file: &[u8]) -> Option<&str> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b".+-".contains(byte);
    let marks = file.windows(MARK.len()).enumerate();
    let mut marks = marks.filter(|(_, bytes)| *bytes == MARK.as_bytes());
    marks.find_map(|(at, _)| {
        let after = &file[at + MARK.len()..];
        let length = after.iter().take_while(is_part).count();
        let version = core::str::from_utf8(&after[..length]).ok()?;
        // The mark alone is also in this file.
        let is_one = version.starts_with(|c: char| c.is_ascii_digit());
        (is_one && after.get(length) == Some(&0)).then_some(version)
    })
}

/// Limits of a traced program: a table of Markdown, also in the documentation of this crate.
pub const LIMITS: &str = include_str!("../limits.md");

#[cfg(test)]
mod tests {
    use super::{version, version_in};

    #[test]
    fn this_program_holds_the_version_that_it_states() {
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(version(), env!("CARGO_PKG_VERSION"));
        assert_eq!(version_in(&own), Some(version()));
    }

    #[test]
    fn a_mark_without_a_version_is_passed_over() {
        let file = b"ringmark library is not one\0ringmark library 1.20.3-rc1\0rest";
        assert_eq!(version_in(file), Some("1.20.3-rc1"));
        assert_eq!(version_in(b"ringmark library "), None);
        assert_eq!(version_in(b""), None);
    }
}
