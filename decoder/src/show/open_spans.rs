//! The arguments of open spans, as text.

use crate::show::text;
use crate::sums::open_spans::{Kept, OpenSpan};
use crate::trace_file::field::Field;
use crate::trace_file::value::Value;
use crate::words::escape;

/// Stands for what is not there: an argument, or the end of one.
const NOT_KEPT: &str = "…";

impl OpenSpan<'_> {
    /// Appends its arguments as ` key=value …`. The sign `…` stands where an argument, or the end of
    /// one, was not kept.
    pub fn text_args(&self, out: &mut Vec<u8>) {
        let mut budget = usize::MAX;
        for (field, kept) in self.args() {
            out.push(b' ');
            escape::text(&field.name, out);
            out.push(b'=');
            match kept {
                Kept::Whole(value) => shown(field, value, &mut budget, out),
                Kept::Cut(value) => {
                    text::value(field, value, &mut budget, out);
                    out.extend_from_slice(NOT_KEPT.as_bytes());
                }
                Kept::Not => out.extend_from_slice(NOT_KEPT.as_bytes()),
            }
        }
    }
}

fn shown(field: &Field, value: Value<'_>, budget: &mut usize, out: &mut Vec<u8>) {
    text::value(field, value, budget, out);
    escape::text(&field.unit, out);
}
