//! Open spans as JSON, one object per line. `format-spec/JSON.md` describes the objects.

use crate::show::json::push_names_of;
use crate::show::json_args::{self, ArgKeys};
use crate::show::json_keys::{head, id, key, known, number, text, times, wall_ns};
use crate::sums::open_spans::{Kept, OpenSpan, OpenThread};
use crate::words::escape;
use crate::words::number::unsigned;
use crate::words::timestamp::Stamper;

impl OpenThread<'_> {
    /// Appends a line for each of its open spans, the outermost first: an object of kind `open_span`
    /// of the JSON that `ringmark cat` prints. It has the keys of an event; arguments that were not
    /// kept are null there, or cut, and `cut` names them.
    pub fn push_json(&self, out: &mut Vec<u8>) {
        for (depth, span) in self.spans.iter().enumerate() {
            self.push_span(span, depth, out);
        }
    }

    fn push_span(&self, span: &OpenSpan<'_>, depth: usize, out: &mut Vec<u8>) {
        let (session, ty) = (self.session, span.ty);
        head(session, out);
        key("ring", out);
        number(Some(self.ring.0), out);
        key("tid", out);
        known(self.tid, out);
        key("thread", out);
        text(self.name(), out);
        out.extend_from_slice(b",\"seq\":null");
        let wall = session.clock.wall_of(span.since, span.since_ns);
        let wall = wall_ns(session, wall);
        times(&mut Stamper::default(), wall, span.since_ns, out);
        key("dur_ns", out);
        unsigned(span.open_ns, out);
        push_names_of(
            "open_span",
            ty,
            (&ty.name, &ty.origin.target),
            ty.level,
            out,
        );
        key("span", out);
        id(span.span, out);
        out.extend_from_slice(b",\"parent\":null");
        let keys = ArgKeys::new(ty);
        keys.ids(ty, &span.payload, out);
        json_args::write_payload(ty, &span.payload, &keys, out);
        key("depth", out);
        unsigned(depth as u64, out);
        key("deeper", out);
        unsigned(self.deeper, out);
        key("moving", out);
        out.extend_from_slice(if self.moving { b"true" } else { b"false" });
        out.extend_from_slice(b",\"cut\":[");
        let cut = span
            .args()
            .filter(|(_, kept)| !matches!(kept, Kept::Whole(_)));
        for (place, (field, _)) in cut.enumerate() {
            if place > 0 {
                out.push(b',');
            }
            escape::json(&field.name, out);
        }
        out.extend_from_slice(b"]}\n");
    }
}
