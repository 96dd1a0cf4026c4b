//! Names that a peer sends, made fit to be a directory's and a label's.

/// Most characters of a name: as many as a DNS name has, and a directory's.
const NAME_MAX: usize = 253;

/// A name that would have to be cut to be a directory's, and could then be another one's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of the {what} has {found} characters, expected at most {NAME_MAX}")]
pub(crate) struct NameTooLong {
    /// What it names.
    what: &'static str,
    /// Its characters.
    found: usize,
}

/// Checks that a name is short enough to be a directory's as a whole.
///
/// # Errors
/// It is too long.
pub(crate) fn fits(what: &'static str, name: &str) -> Result<(), NameTooLong> {
    let found = name.chars().count();
    if found <= NAME_MAX {
        return Ok(());
    }
    Err(NameTooLong { what, found })
}

/// Makes the name of one directory of whatever a peer sent: letters, digits, `.`, `_` and `-`, not
/// hidden. It is as long as what was sent, or one character longer: see [`fits`].
pub(crate) fn safe(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = text
        .chars()
        .map(|c| if allowed(c) { c } else { '_' })
        .collect();
    match name.chars().next() {
        None => "unnamed".to_owned(),
        Some('.' | '-') => format!("_{name}"),
        Some(_) => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_cannot_leave_the_store() {
        for (said, name) in [
            ("web-1", "web-1"),
            ("../../etc", "_.._.._etc"),
            ("..", "_.."),
            ("a/b\0c\n", "a_b_c_"),
            ("", "unnamed"),
            ("ü", "_"),
        ] {
            assert_eq!(safe(said), name);
        }
        let long = ["x".repeat(253), format!("-{}", "x".repeat(252))];
        assert_eq!(
            [&long[0], &long[1]].map(|name| safe(name).len()),
            [253, 254]
        );
        assert!(long.iter().all(|name| fits("host", name).is_ok()));
        let found = fits("host", &"ü".repeat(254));
        assert!(found.is_err_and(|why| {
            why.to_string()
                .contains("254 characters, expected at most 253")
        }));
    }
}
