//! What a terminal is given: text that is safe for it, in its width, and notices on standard error.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use ringmark_decoder::escape::Printable;

/// Text from a trace or from another process, made safe for a terminal.
pub fn printable(text: &str) -> String {
    if text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'[' | b']'..=b'~'))
    {
        return text.to_owned();
    }
    Printable(text.as_bytes()).to_string()
}

/// Width of the terminal `to` in columns; `None` if it is no terminal, or does not say.
pub fn columns(to: impl IsTerminal + AsFd) -> Option<usize> {
    if !to.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(to).ok()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

/// Prints a line on standard error. A closed standard error is no reason to fail.
pub fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "ringmark: {text}");
}

/// Prints whole lines on standard error, as they are.
pub fn note_lines(lines: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(lines.as_bytes());
}

/// The present moment, ns since 1970: what is late of a host that has been silent is unknown.
pub fn now_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |now| u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

/// The name of a host or service for a cell; `-`: it has none.
pub fn host_name(bytes: &[u8]) -> String {
    match bytes {
        [] => "-".to_owned(),
        bytes => printable(&String::from_utf8_lossy(bytes)),
    }
}
