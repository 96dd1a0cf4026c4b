//! The text of a wait that was seen.

use crate::trace_file::texts;

/// What a thread waited for, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct WaitText<'d> {
    /// What for, as it stands in the trace.
    pub what: &'d [u8],
    /// The functions that waited, the innermost first, a line each.
    lines: &'d [u8],
}

impl<'d> WaitText<'d> {
    pub(super) fn of(text: &'d [u8]) -> Self {
        let end = text.iter().position(|byte| *byte == b'\n');
        let (what, lines) = text.split_at(end.unwrap_or(text.len()));
        Self {
            what,
            lines: lines.get(1..).unwrap_or_default(),
        }
    }

    /// The functions that waited, the innermost first.
    pub fn functions(&self) -> impl Iterator<Item = &'d [u8]> {
        texts::functions(self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::WaitText;

    #[test]
    fn the_first_line_is_what_for() {
        let of = |text: &'static [u8]| {
            let text = WaitText::of(text);
            (text.what, text.functions().collect::<Vec<_>>())
        };
        assert_eq!(of(b"read a\nf\ng"), (&b"read a"[..], vec![&b"f"[..], b"g"]));
        assert_eq!(of(b"read a"), (&b"read a"[..], vec![]));
        assert_eq!(of(b"read a\n"), (&b"read a"[..], vec![]));
        assert_eq!(of(b""), (&b""[..], vec![]));
    }
}
