//! A process as an option names it: by its id or by its name.

use std::fs;
use std::path::Path;

/// Letters of a name that the kernel keeps.
const COMM_BYTES: usize = 15;
/// Most ids that an error names.
const IDS_SHOWN: usize = 8;

/// The process with this id, or the only one with this name.
///
/// # Errors
/// No process has the name, or several have it.
pub(crate) fn parse_process(text: &str) -> Result<u32, String> {
    if let Ok(pid) = text.parse::<u32>() {
        return match pid {
            0 => Err("found 0, expected a process id or the name of a process".to_owned()),
            pid => Ok(pid),
        };
    }
    if text.is_empty() || text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
        return Err(format!(
            "found {text:?}, expected a process id or the name of a process"
        ));
    }
    let mut found: Vec<u32> = running().filter(|pid| is_called(*pid, text)).collect();
    found.sort_unstable();
    match found.as_slice() {
        [pid] => Ok(*pid),
        [] => Err(format!("no process is called {text:?} here")),
        several => {
            let shown = several.iter().take(IDS_SHOWN).map(u32::to_string);
            let shown = shown.collect::<Vec<_>>().join(", ");
            let more = if several.len() > IDS_SHOWN {
                " …"
            } else {
                ""
            };
            Err(format!(
                "{} processes are called {text:?}: {shown}{more}; expected the id of one",
                several.len()
            ))
        }
    }
}

/// All processes but this one.
fn running() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| *pid != std::process::id())
}

/// Whether a process has this name: as `ps` shows it, or that of its program's file.
fn is_called(pid: u32, name: &str) -> bool {
    let comm = fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
    let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
    let bytes = name.as_bytes();
    if comm == &bytes[..bytes.len().min(COMM_BYTES)] {
        return true;
    }
    let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    program.file_name() == Path::new(name).file_name() && program.file_name().is_some()
}

#[cfg(test)]
mod tests {
    use super::parse_process;

    #[test]
    fn what_is_no_process_is_refused_in_words() {
        for (text, told) in [
            ("0", "expected a process id or the name"),
            ("-5", "expected a process id or the name"),
            ("12x", "expected a process id or the name"),
            ("", "expected a process id or the name"),
            (
                "no-such-program",
                "no process is called \"no-such-program\"",
            ),
        ] {
            let error = parse_process(text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
        assert_eq!(parse_process("812"), Ok(812));
    }
}
