//! Which span is in which, and the ids that this gives them.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;

use ringmark_decoder::{Chosen, Dump, Row, Value};

/// The field of a span that says which trace it goes on with, as W3C Trace Context has it.
const TRACEPARENT: &[u8] = b"traceparent";

/// Whether a row is a span: it has a beginning and an end.
pub(super) fn is_span(row: &Row<'_, '_>) -> bool {
    matches!(row.kind, "span" | "call") && row.dur_ns.is_some() && row.start_ns.is_some()
}

/// What OTLP calls a span, or the span that an event is in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ids {
    /// 0: it is in no trace.
    pub(super) trace: u128,
    pub(super) span: u64,
    /// 0: it has no parent.
    pub(super) parent: u64,
}

/// A thread of a session.
type Thread = (usize, u32);

/// A span, as far as others need it.
#[derive(Debug)]
struct Link {
    start_ns: u64,
    end_ns: u64,
    id: u64,
    /// What of a trace context it carries.
    context: Option<(u128, u64)>,
    parent: Option<usize>,
    trace: u128,
}

/// The spans of a dump, in the order of their rows.
#[derive(Debug, Default)]
pub(super) struct Links {
    spans: Vec<Link>,
    /// Spans by session and their own id, in the order of their ends. Ids are given again.
    by_id: HashMap<(usize, u64), Vec<usize>>,
    /// Spans of a thread that have no id: one is in another if its time is.
    of_thread: BTreeMap<Thread, Vec<usize>>,
}

impl Links {
    /// Those of the rows that are chosen.
    pub(super) fn of(dump: &Dump, chosen: &Chosen) -> Self {
        let (mut links, mut parents) = (Self::default(), Vec::new());
        let walked = dump.each_row_in_spans(chosen.clone(), |row| {
            if is_span(row) {
                parents.push(row.span_ids().1);
                links.add(row);
            }
            Ok::<_, Infallible>(())
        });
        let _ = walked;
        links.nest();
        links.join(&parents);
        links
    }

    fn add(&mut self, row: &Row<'_, '_>) {
        let place = self.spans.len();
        let session = row.record.session.number;
        let start_ns = row.start_ns.unwrap_or_default();
        match row.span_ids().0 {
            Some(id) => self.by_id.entry((session, id)).or_default().push(place),
            None => self.of_thread.entry(thread(row)).or_default().push(place),
        }
        let uuid = u128::from_be_bytes(row.record.session.uuid.0);
        let id = [
            uuid as u64,
            (uuid >> 64) as u64,
            row.record.slot().0.into(),
            row.record.seq,
        ];
        self.spans.push(Link {
            start_ns,
            end_ns: start_ns.saturating_add(row.dur_ns.unwrap_or_default()),
            id: (hash(&id) as u64).max(1),
            context: context(row),
            parent: None,
            trace: 0,
        });
    }

    /// Puts the spans of each thread into those whose time has theirs.
    fn nest(&mut self) {
        for spans in self.of_thread.values_mut() {
            let all = &mut self.spans;
            // Of two that are alike the one that ended later is around the other.
            spans.sort_by_key(|place| {
                (
                    all[*place].start_ns,
                    u64::MAX - all[*place].end_ns,
                    usize::MAX - *place,
                )
            });
            let mut open: Vec<usize> = Vec::new();
            for place in spans.iter() {
                let end = all[*place].end_ns;
                while open.last().is_some_and(|around| all[*around].end_ns < end) {
                    let _ = open.pop();
                }
                all[*place].parent = open.last().copied();
                open.push(*place);
            }
        }
    }

    /// Finds the parents that records name, and gives each span the trace of the outermost one around it.
    fn join(&mut self, parents: &[Option<u64>]) {
        let mut sessions: HashMap<usize, usize> = HashMap::new();
        for ((session, _), places) in &self.by_id {
            sessions.extend(places.iter().map(|place| (*place, *session)));
        }
        for ((session, _), places) in &self.of_thread {
            sessions.extend(places.iter().map(|place| (*place, *session)));
        }
        for (place, parent) in parents.iter().enumerate() {
            let found = parent.and_then(|id| {
                let session = sessions.get(&place)?;
                self.with_id(*session, id, self.spans[place].start_ns)
            });
            if self.spans[place].parent.is_none() {
                self.spans[place].parent = found.filter(|found| *found != place);
            }
        }
        for place in 0..self.spans.len() {
            let trace = self.trace_of(place);
            self.spans[place].trace = trace;
        }
    }

    /// The span of this id that lasts at this time; else the last one that has it.
    fn with_id(&self, session: usize, id: u64, at_ns: u64) -> Option<usize> {
        let places = self.by_id.get(&(session, id))?;
        let lasts = |place: &&usize| {
            let span = &self.spans[**place];
            (span.start_ns..=span.end_ns).contains(&at_ns)
        };
        places.iter().find(lasts).or(places.last()).copied()
    }

    fn trace_of(&self, place: usize) -> u128 {
        let mut at = place;
        // Parents of damaged files may be a circle.
        for _ in 0..=self.spans.len().min(4096) {
            if let Some((trace, _)) = self.spans[at].context {
                return trace;
            }
            match self.spans[at].parent {
                Some(parent) => at = parent,
                None => break,
            }
        }
        hash(&[self.spans[at].id, 1]).max(1)
    }

    /// The ids of a span, by its number.
    pub(super) fn of_span(&self, number: usize) -> Ids {
        let span = &self.spans[number];
        let inside = span.parent.map(|parent| self.spans[parent].id);
        let from_afar = span.context.map(|(_, parent)| parent);
        Ids {
            trace: span.trace,
            span: span.id,
            parent: inside.or(from_afar).unwrap_or_default(),
        }
    }

    /// The span that an event is in.
    pub(super) fn around(&self, row: &Row<'_, '_>) -> Ids {
        let at_ns = row.start_ns.unwrap_or_default();
        let named = row.span_ids().0;
        let named = named.and_then(|id| self.with_id(row.record.session.number, id, at_ns));
        let place = named.or_else(|| self.on_thread(thread(row), at_ns));
        place.map_or(Ids::default(), |place| self.of_span(place))
    }

    /// The innermost span of a thread that lasts at a time.
    fn on_thread(&self, thread: Thread, at_ns: u64) -> Option<usize> {
        let spans = self.of_thread.get(&thread)?;
        let begun = spans.partition_point(|place| self.spans[*place].start_ns <= at_ns);
        let mut place = *spans[..begun].last()?;
        while self.spans[place].end_ns < at_ns {
            place = self.spans[place].parent?;
        }
        Some(place)
    }
}

fn thread(row: &Row<'_, '_>) -> Thread {
    (row.record.session.number, row.record.tid())
}

/// The trace and the parent in a span's `traceparent`.
fn context(row: &Row<'_, '_>) -> Option<(u128, u64)> {
    let mut found = None;
    row.args(|name, _, value| {
        if name == TRACEPARENT
            && let Value::Str(text) = value
        {
            found = std::str::from_utf8(text).ok().and_then(trace_context);
        }
    });
    found
}

/// Reads `00-TRACE-SPAN-FLAGS`.
fn trace_context(text: &str) -> Option<(u128, u64)> {
    let mut parts = text.split('-');
    let _version = parts.next().filter(|version| version.len() == 2)?;
    let (trace, span) = (parts.next()?, parts.next()?);
    let is_hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if trace.len() != 32 || span.len() != 16 || !is_hex(trace) || !is_hex(span) {
        return None;
    }
    let trace = u128::from_str_radix(trace, 16)
        .ok()
        .filter(|trace| *trace != 0)?;
    Some((trace, u64::from_str_radix(span, 16).ok()?))
}

/// FNV-1a of 128 bits.
fn hash(words: &[u64]) -> u128 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, byte| {
        (hash ^ u128::from(byte)).wrapping_mul((1 << 88) + 0x13b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_context_is_read_or_is_none() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let read = (
            0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c,
            0xb7ad_6b71_6920_3331,
        );
        assert_eq!(trace_context(good), Some(read));
        let zero = good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32));
        for bad in [
            "",
            "00",
            "00-1-2-3",
            &good[..40],
            &good.replace('c', "g"),
            &zero,
        ] {
            assert_eq!(trace_context(bad), None, "{bad}");
        }
    }
}
