//! What profile tracers have gathered: as lines of an answer, and as events of the session.

use std::fmt::Write;
use std::sync::Once;

use ringmark_format::mailbox::TEXT_BYTES_MAX;

use super::try_tracers;
use crate::record::profile_sum::Sum;
use crate::record::profile_tables::uncounted;
use crate::tracers::{Names, Tracer, TracerKind, Tracers};

/// Kept free for the lines behind the list.
const LAST_LINES_BYTES: usize = 128;

/// Ticks as nanoseconds.
#[derive(Clone, Copy)]
struct Scale(u64);

/// Nanoseconds whose ticks say what the clock's rate is.
const SPAN_NS: u64 = 1 << 40;

impl Scale {
    fn of_session() -> Self {
        Self(
            ringmark::client::ticks_of_ns(SPAN_NS)
                .unwrap_or(SPAN_NS)
                .max(1),
        )
    }

    fn ns(self, ticks: u64) -> u64 {
        let ns = u128::from(ticks) * u128::from(SPAN_NS) / u128::from(self.0);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// What is known of a function, in ns.
struct Row<'a> {
    names: &'a Names,
    /// Calls that ended, and those whose end could not be seen.
    calls: u64,
    open: u64,
    unwound: u64,
    total: u64,
    own: u64,
    sum: u64,
    shortest: u64,
    longest: u64,
    /// `LOW:CALLS` with commas between: calls of LOW ns up to twice as many.
    histogram: String,
}

impl<'a> Row<'a> {
    /// `None`: it was not called.
    fn new(names: &'a Names, sum: &Sum, scale: Scale) -> Option<Self> {
        let calls = sum.ended() + sum.loose;
        if calls == 0 && sum.begun == 0 {
            return None;
        }
        let mut histogram = String::new();
        for (bucket, calls) in sum.buckets.iter().enumerate() {
            if *calls > 0 {
                let comma = if histogram.is_empty() { "" } else { "," };
                let low = scale.ns(1 << bucket);
                // Writing to a string does not fail.
                let _ = write!(histogram, "{comma}{low}:{calls}");
            }
        }
        Some(Self {
            names,
            calls,
            open: sum.begun.saturating_sub(calls),
            unwound: sum.unwound,
            total: scale.ns(sum.total),
            own: scale.ns(sum.own),
            sum: scale.ns(sum.sum),
            shortest: scale.ns(sum.shortest.unwrap_or(0)),
            longest: scale.ns(sum.longest),
            histogram,
        })
    }

    /// The names behind tabs.
    fn line(&self) -> String {
        let histogram = match self.histogram.as_str() {
            "" => "-",
            text => text,
        };
        format!(
            "function={} {} {} {} {} {} {} {} {histogram}\t{}\t{}\n",
            self.calls,
            self.open,
            self.unwound,
            self.total,
            self.own,
            self.sum,
            self.shortest,
            self.longest,
            self.names.function,
            self.names.module,
        )
    }

    fn emit(&self, tracer: &str) {
        ringmark::event!(
            target: "ringmark",
            "function_profile",
            tracer = tracer,
            function = self.names.function.as_str(),
            module = self.names.module.as_str(),
            calls = self.calls,
            open = self.open,
            unwound = self.unwound,
            total_ns = self.total,
            self_ns = self.own,
            sum_ns = self.sum,
            min_ns = self.shortest,
            max_ns = self.longest,
            histogram = self.histogram.as_str(),
        );
    }
}

/// Functions of a profile tracer from the `from`-th on, as far as they fit; `next=` where it goes
/// on.
pub(super) fn answer(tracers: &Tracers, tracer: &Tracer, from: usize) -> String {
    let scale = Scale::of_session();
    let mut text = String::new();
    for (at, (names, sum)) in tracers.profile_of(tracer).enumerate().skip(from) {
        ringmark::client::working();
        let Some(row) = Row::new(names, &sum, scale) else {
            continue;
        };
        let line = row.line();
        if text.len() + line.len() > TEXT_BYTES_MAX - LAST_LINES_BYTES {
            if text.is_empty() {
                continue; // Longer than an answer: it is passed over.
            }
            let _ = writeln!(text, "next={at}");
            break;
        }
        text.push_str(&line);
    }
    let _ = writeln!(text, "uncounted={}", uncounted());
    text
}

/// Writes what a tracer has gathered into the session, if it is a profile.
pub(super) fn write(tracers: &Tracers, tracer: &Tracer) {
    if tracer.options().kind != TracerKind::Profile {
        return;
    }
    let scale = Scale::of_session();
    for (names, sum) in tracers.profile_of(tracer) {
        ringmark::client::working();
        if let Some(row) = Row::new(names, &sum, scale) {
            row.emit(tracer.name());
        }
    }
}

/// From now on what is gathered when the program exits is written.
pub(super) fn write_at_exit() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the handler lives as long as this code, which is never unloaded.
        unsafe { libc::atexit(at_exit) };
    });
}

/// Of tracers that are on: the others were written when they were stopped. A request that is being
/// done is not waited for.
extern "C" fn at_exit() {
    if let Some(tracers) = try_tracers()
        && let Some(tracers) = tracers.as_ref()
    {
        let on = tracers.all().iter().filter(|tracer| tracer.is_on());
        on.for_each(|tracer| write(tracers, tracer));
    }
}
