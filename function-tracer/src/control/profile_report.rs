//! What profile tracers have gathered, as lines of an answer and as events of the session.

use std::fmt::Write;
use std::sync::Once;
use std::time::Duration;

use ringmark::Session;
use ringmark_format::mailbox::TEXT_BYTES_MAX;
use ringmark_format::tracer_text::{AnswerLine, Count, Gathered, Histogram};

use super::process_tracers::lock_within;
use crate::record::profile_sum::Sum;
use crate::record::profile_tables::uncounted;
use crate::tracers::{CellOfFunction, Names, Tracer, TracerKind, Tracers};

/// Bytes kept free for the lines after the list.
const LAST_LINES_BYTES: usize = 128;

/// The clock's rate: ticks in [`SPAN_NS`].
#[derive(Clone, Copy)]
struct Scale(u64);

/// The span in which ticks are counted, in ns.
const SPAN_NS: u64 = 1 << 40;

impl Scale {
    fn of_session() -> Self {
        Self(
            Session::current()
                .map_or(SPAN_NS, |session| session.ticks_of_ns(SPAN_NS))
                .max(1),
        )
    }

    fn ns(self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(SPAN_NS) / u128::from(self.0);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// What was gathered about a function. `None`: it was not called.
fn gathered<'a>(names: &'a Names, sum: &Sum, scale: Scale) -> Option<Gathered<'a>> {
    let calls = sum.ended() + sum.loose;
    if calls == 0 && sum.begun == 0 {
        return None;
    }
    let buckets = sum.buckets.iter().enumerate();
    let buckets = buckets.filter(|(_, calls)| **calls > 0);
    let histogram = buckets.map(|(bucket, calls)| (scale.ns(1 << bucket), *calls));
    Some(Gathered {
        calls,
        open: sum.begun.saturating_sub(calls),
        unwound: sum.unwound,
        total: scale.ns(sum.total),
        own: scale.ns(sum.own),
        sum: scale.ns(sum.sum),
        min: scale.ns(sum.shortest.unwrap_or(0)),
        max: scale.ns(sum.longest),
        histogram: Histogram(histogram.collect()),
        function: names.function.as_str().into(),
        module: names.module.as_str().into(),
    })
}

fn emit(tracer: &str, id: u32, gathered: &Gathered<'_>) {
    ringmark_format::emit_function_profile!([ringmark::event] tracer, id, gathered);
}

/// Says in the session that a profile tracer begins to count; nothing for other kinds. A process that ends without
/// writing what it has gathered is known by that.
pub(super) fn begin(tracer: &Tracer) {
    if tracer.options().kind == TracerKind::Profile {
        ringmark_format::emit_function_profile!([ringmark::event] begin tracer.name());
    }
}

/// The answer with the functions of a profile tracer from the one with the number `from` on, as many
/// as fit. A line `next=` says where the next answer goes on.
pub(super) fn answer(tracers: &Tracers, tracer: &Tracer, from: usize) -> String {
    let scale = Scale::of_session();
    let mut text = String::new();
    let from = u32::try_from(from).unwrap_or(u32::MAX);
    for CellOfFunction {
        function: number,
        names,
        sum,
        ..
    } in tracers.profile_of(tracer, from)
    {
        ringmark::__private::helper::working();
        let Some(function) = gathered(names, &sum, scale) else {
            continue;
        };
        let line = format!("{}\n", AnswerLine::Gathered(function));
        if text.len() + line.len() > TEXT_BYTES_MAX - LAST_LINES_BYTES {
            if text.is_empty() {
                continue; // This line alone is longer than an answer.
            }
            let next = AnswerLine::Count(Count::Next, number.into());
            let _ = writeln!(text, "{next}");
            break;
        }
        text.push_str(&line);
    }
    let uncounted = AnswerLine::Count(Count::Uncounted, uncounted());
    let _ = writeln!(text, "{uncounted}");
    text
}

/// Writes what a profile tracer has gathered into the session; nothing for other kinds.
pub(super) fn write(tracers: &Tracers, tracer: &Tracer) {
    if tracer.options().kind != TracerKind::Profile {
        return;
    }
    let scale = Scale::of_session();
    for CellOfFunction {
        cell, names, sum, ..
    } in tracers.profile_of(tracer, 0)
    {
        ringmark::__private::helper::working();
        if let Some(function) = gathered(names, &sum, scale) {
            emit(tracer.name(), cell, &function);
        }
    }
    let (name, uncounted) = (tracer.name(), uncounted());
    ringmark_format::emit_function_profile!([ringmark::event] end name, uncounted);
}

/// Makes the program's exit write what was gathered until then.
pub(super) fn write_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: as invariant 3 of `fork_locks`: the handler is never unloaded.
        unsafe { libc::atexit(at_exit) };
        // SAFETY: as above.
        unsafe { at_quick_exit(at_exit) };
    });
}

unsafe extern "C" {
    /// As `atexit`, for `quick_exit`.
    fn at_quick_exit(function: extern "C" fn()) -> libc::c_int;
}

/// How long the program's exit waits for another thread that uses the tracers, such as the one that
/// answers requests and follows modules.
const EXIT_WAIT_MAX: Duration = Duration::from_secs(1);

/// Writes what tracers that are on have gathered; stopped ones were written when they were stopped.
extern "C" fn at_exit() {
    if let Some(tracers) = lock_within(EXIT_WAIT_MAX)
        && let Some(tracers) = tracers.as_ref()
    {
        let on = tracers.all().iter().filter(|tracer| tracer.is_on());
        on.for_each(|tracer| write(tracers, tracer));
    }
}
