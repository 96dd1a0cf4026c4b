//! Limits of this shell's processes, which the programs that it starts inherit.

use rustix::process::{Resource, getrlimit};

use super::finding::{Finding, mib};

/// Descriptors that a recorder of some dozen sessions takes.
const DESCRIPTORS: u64 = 256;
/// Address space that a program with a session needs for itself.
const ADDRESS_SPACE_OF_PROGRAM: u64 = 1 << 30;

/// What each limit leaves.
pub(super) fn findings(session_bytes: u64) -> Vec<Finding> {
    let address_space = session_bytes.saturating_mul(4) + ADDRESS_SPACE_OF_PROGRAM;
    vec![
        finding(
            "file size",
            Resource::Fsize,
            session_bytes,
            mib,
            "'ulimit -f unlimited': a session is cut to this, and a recording ends there",
        ),
        finding(
            "open files",
            Resource::Nofile,
            DESCRIPTORS,
            |number| number.to_string(),
            "'ulimit -n 1024': a recorder has two files open for each session",
        ),
        finding(
            "address space",
            Resource::As,
            address_space,
            mib,
            "'ulimit -v unlimited': sessions are mapped whole",
        ),
        locked_memory(),
    ]
}

fn finding(
    about: &'static str,
    resource: Resource,
    least: u64,
    text: fn(u64) -> String,
    advice: &str,
) -> Finding {
    judged(about, getrlimit(resource).current, least, text, advice)
}

fn judged(
    about: &'static str,
    current: Option<u64>,
    least: u64,
    text: fn(u64) -> String,
    advice: &str,
) -> Finding {
    match current {
        None => Finding::works(about, "no limit"),
        Some(limit) if limit >= least => Finding::works(about, text(limit)),
        Some(limit) => Finding::limited(about, text(limit), advice),
    }
}

/// Ringmark locks no memory; people look for this limit all the same.
fn locked_memory() -> Finding {
    let limit = getrlimit(Resource::Memlock).current;
    let limit = limit.map_or_else(|| "no limit".to_owned(), mib);
    Finding::works("locked memory", format!("{limit}; Ringmark locks none"))
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::{judged, mib};

    #[test]
    fn a_limit_counts_where_less_is_left_than_needed() {
        let verdict = |current| judged("x", current, 16 << 20, mib, "raise it").verdict;
        assert_eq!(verdict(None), Verdict::Works);
        assert_eq!(verdict(Some(16 << 20)), Verdict::Works);
        assert_eq!(verdict(Some((16 << 20) - 1)), Verdict::Limited);
        let found = judged("x", Some(4096), 16 << 20, mib, "raise it");
        assert_eq!(found.found, "4 KiB");
        assert_eq!(found.advice.as_deref(), Some("raise it"));
    }
}
