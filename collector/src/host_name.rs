//! Names that a peer sends, made safe to be the name of a directory and a label of a figure.

/// Makes a directory's name of any text; [`fits`] bounds its length.
pub(crate) use ringmark_decoder::store::directory_name as safe;

/// Most characters of a name: a DNS name has no more, and a directory's could have two more.
const NAME_MAX: usize = 253;

/// A name too long to be a directory's as a whole. Cut, it could become another host's name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name of the {what} has {found} characters, expected at most {NAME_MAX}")]
pub struct NameTooLong {
    /// What it names: "host" or "service".
    what: &'static str,
    /// Number of its characters.
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

/// The beginning of a name, for messages: a peer must not fill the log with it.
pub(crate) fn short(name: &str) -> String {
    const SHOWN: usize = 80;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_shown_in_part() {
        assert_eq!(short("web-1"), "web-1");
        let shown = short(&"ü".repeat(5000));
        assert_eq!(shown, format!("{}…", "ü".repeat(80)));
    }

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
