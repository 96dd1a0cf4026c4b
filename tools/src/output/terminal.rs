//! What a terminal is given: text that is safe for it, in its width, and notices on standard error.

use std::io::IsTerminal;
use std::os::fd::AsFd;

use ringmark_decoder::escape::Printable;

/// Text from a trace or from another process, made safe for a terminal.
pub(crate) fn printable(text: &str) -> String {
    if text
        .bytes()
        .all(|byte| matches!(byte, b' '..=b'[' | b']'..=b'~'))
    {
        return text.to_owned();
    }
    Printable(text.as_bytes()).to_string()
}

/// Width of the terminal `to` in columns; `None` if it is no terminal, or does not say.
pub(crate) fn columns(to: impl IsTerminal + AsFd) -> Option<usize> {
    if !to.is_terminal() {
        return None;
    }
    let size = rustix::termios::tcgetwinsize(to).ok()?;
    Some(size.ws_col.into()).filter(|columns| *columns > 0)
}

/// Prints a line on standard error. A closed standard error is no reason to fail.
pub(crate) fn note(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "ringmark: {text}");
}

/// Prints whole lines on standard error, as they are.
pub(crate) fn note_lines(lines: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(lines.as_bytes());
}
