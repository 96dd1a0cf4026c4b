//! A row of `report` as a JSON object: the same keys whatever it counts.

use serde_json::{Value, json};

use crate::output::json::{self, Head};

/// The figures of a row. `None`: the figure does not apply, or is not known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct JsonRow<'r> {
    /// What is counted: `span`, `function`, `profile`, or a kind of events.
    pub(crate) of: &'r str,
    /// Name of the function tracer that counted.
    pub(crate) tracer: Option<&'r str>,
    pub(crate) name: &'r str,
    /// Target of the events, or module of the function.
    pub(crate) target: &'r str,
    /// Number of events, spans or calls.
    pub(crate) count: u64,
    pub(crate) payload_bytes: Option<u64>,
    /// Number of calls that have not ended.
    pub(crate) open: Option<u64>,
    /// Number of calls that ended without returning.
    pub(crate) not_returned: Option<u64>,
    /// Number of spans or calls whose beginning is not known.
    pub(crate) no_start: Option<u64>,
    /// Number of spans or calls whose end is not known.
    pub(crate) no_end: Option<u64>,
    /// Number of spans whose own time is not known.
    pub(crate) unknown_self: Option<u64>,
    pub(crate) total_ns: Option<u64>,
    pub(crate) self_ns: Option<u64>,
    pub(crate) mean_ns: Option<u64>,
    pub(crate) min_ns: Option<u64>,
    pub(crate) p50_ns: Option<u64>,
    pub(crate) p99_ns: Option<u64>,
    pub(crate) max_ns: Option<u64>,
    /// Keys of the figures that come from a histogram.
    pub(crate) approximate: &'r [&'r str],
    /// Least duration of each step of the histogram in ns, and number of calls in it.
    pub(crate) histogram: Option<&'r [(u64, u64)]>,
}

/// The object of a row.
pub(crate) fn object(head: &Head, row: &JsonRow<'_>) -> Value {
    let fields = json!({
        "of": row.of,
        "tracer": row.tracer,
        "name": row.name,
        "target": Some(row.target).filter(|target| !target.is_empty()),
        "count": row.count,
        "payload_bytes": row.payload_bytes,
        "open": row.open,
        "not_returned": row.not_returned,
        "no_start": row.no_start,
        "no_end": row.no_end,
        "unknown_self": row.unknown_self,
        "total_ns": row.total_ns,
        "self_ns": row.self_ns,
        "mean_ns": row.mean_ns,
        "min_ns": row.min_ns,
        "p50_ns": row.p50_ns,
        "p99_ns": row.p99_ns,
        "max_ns": row.max_ns,
        "approximate": row.approximate,
        "histogram": row.histogram,
    });
    json::object("row", head, fields)
}
