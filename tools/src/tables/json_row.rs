//! A row of `report` as a JSON object: the same keys whatever it counts.

use ringmark_decoder::escape;
use ringmark_format::json::VERSION;

use ringmark_console::json::Head;

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
    /// What threads did in `total_ns`, and of how many spans that is not known.
    pub(crate) running_ns: Option<u64>,
    pub(crate) ready_ns: Option<u64>,
    pub(crate) throttled_ns: Option<u64>,
    pub(crate) waiting_ns: Option<u64>,
    pub(crate) waits: Option<u64>,
    pub(crate) preemptions: Option<u64>,
    pub(crate) unknown_states: Option<u64>,
    /// Keys of the figures that come from a histogram.
    pub(crate) approximate: &'r [&'r str],
    /// Least duration of each step of the histogram in ns, and number of calls in it.
    pub(crate) histogram: Option<&'r [(u64, u64)]>,
}

/// The object of a row as a line of JSON: a process may have hundreds of thousands of rows. Keys are in
/// the order of their names, as in all objects that commands print.
pub(crate) fn line(head: &Head, row: &JsonRow<'_>) -> String {
    let approximate = row.approximate.iter();
    let approximate = approximate.map(|key| string(key)).collect::<Vec<_>>();
    let mut line = String::with_capacity(512);
    let mut add = |key: &str, value: &str| {
        let before = if line.is_empty() { "{\"" } else { ",\"" };
        line.extend([before, key, "\":", value]);
    };
    add("approximate", &format!("[{}]", approximate.join(",")));
    add("count", &row.count.to_string());
    add("histogram", &or_null(row.histogram.map(steps)));
    add("host", &or_null(head.host.as_deref().map(string)));
    add("kind", "\"row\"");
    add("max_ns", &number(row.max_ns));
    add("mean_ns", &number(row.mean_ns));
    add("min_ns", &number(row.min_ns));
    add("name", &string(row.name));
    add("no_end", &number(row.no_end));
    add("no_start", &number(row.no_start));
    add("not_returned", &number(row.not_returned));
    add("of", &string(row.of));
    add("open", &number(row.open));
    add("p50_ns", &number(row.p50_ns));
    add("p99_ns", &number(row.p99_ns));
    add("payload_bytes", &number(row.payload_bytes));
    add("pid", &number(head.pid.map(u64::from)));
    add("preemptions", &number(row.preemptions));
    add("ready_ns", &number(row.ready_ns));
    add("running_ns", &number(row.running_ns));
    add("self_ns", &number(row.self_ns));
    add("service", &or_null(head.service.as_deref().map(string)));
    add("session", &or_null(head.session.as_deref().map(string)));
    let target = Some(row.target).filter(|target| !target.is_empty());
    add("target", &or_null(target.map(string)));
    add("throttled_ns", &number(row.throttled_ns));
    add("total_ns", &number(row.total_ns));
    add("tracer", &or_null(row.tracer.map(string)));
    add("unknown_self", &number(row.unknown_self));
    add("unknown_states", &number(row.unknown_states));
    add("v", &VERSION.to_string());
    add("waiting_ns", &number(row.waiting_ns));
    add("waits", &number(row.waits));
    line.push('}');
    line
}

fn or_null(value: Option<String>) -> String {
    value.unwrap_or_else(|| "null".to_owned())
}

fn number(number: Option<u64>) -> String {
    or_null(number.map(|number| number.to_string()))
}

fn string(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    escape::json(text.as_bytes(), &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

fn steps(steps: &[(u64, u64)]) -> String {
    let steps = steps
        .iter()
        .map(|(least, calls)| format!("[{least},{calls}]"));
    format!("[{}]", steps.collect::<Vec<_>>().join(","))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_row_has_its_keys_in_order_and_its_texts_escaped() {
        let head = Head {
            pid: Some(7),
            ..Head::default()
        };
        let row = JsonRow {
            of: "profile",
            name: "a\"\u{202e}\u{e9}",
            count: 3,
            mean_ns: Some(5),
            approximate: &["p50_ns", "p99_ns"],
            histogram: Some(&[(8, 2), (16, 1)]),
            ..JsonRow::default()
        };
        let line = line(&head, &row);
        assert!(!line.contains('\u{202e}'), "{line}");
        let object: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(object["name"], json!(row.name));
        assert_eq!(object["histogram"], json!([[8, 2], [16, 1]]));
        assert_eq!(object["approximate"], json!(row.approximate));
        assert_eq!(
            [&object["count"], &object["mean_ns"], &object["pid"]],
            [&json!(3), &json!(5), &json!(7)]
        );
        assert_eq!([&object["target"], &object["host"]], [&Value::Null; 2]);
        // Written from a map, keys are sorted.
        let sorted = serde_json::to_string(&object).unwrap();
        assert_eq!(sorted, line.replace("\\u202e", "\u{202e}"));
    }
}
