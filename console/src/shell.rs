//! Words of commands that a person may copy into a shell.

use std::path::Path;

use ringmark_decoder::escape::Printable;

/// A path or another word, quoted for a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@%=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text.into_owned();
    }
    let (before, after) = if text.chars().any(char::is_control) {
        ("$'", "'")
    } else {
        ("'", "'")
    };
    let text = Printable(path.as_os_str().as_encoded_bytes()).to_string();
    let text = if before == "'" {
        path.to_string_lossy().replace('\'', r"'\''")
    } else {
        text.replace('\'', r"\'")
    };
    format!("{before}{text}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_for_the_shell() {
        assert_eq!(quoted(Path::new("a/b.rmk")), "a/b.rmk");
        assert_eq!(quoted(Path::new("a b")), "'a b'");
        assert_eq!(quoted(Path::new("it's")), r"'it'\''s'");
        assert_eq!(quoted(Path::new("a\n'")), r"$'a\n\''");
    }
}
