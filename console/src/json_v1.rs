//! JSON as it was before version 2, for one release: each object is made of the one that took its
//! place.

use ringmark_decoder::Stamper;
use ringmark_format::json::OLD_VERSION;
use serde_json::{Map, Value};

/// An object of version 2 as version 1 had it.
pub(crate) fn form(object: Value) -> Value {
    let Value::Object(mut old) = object else {
        return object;
    };
    let kind = old.get("kind").and_then(Value::as_str).unwrap_or_default();
    match kind.to_owned().as_str() {
        "session" => {
            drop_keys(&mut old, &["host", "service", "started_ts_ns", "ending"]);
            causes_by_name(&mut old);
        }
        "process" => drop_keys(&mut old, &["session", "host", "service"]),
        "removals" => removals(&mut old),
        "ring" => drop_keys(&mut old, &["host", "service", "pid", "ring"]),
        "recorded_session" => recorded_session(&mut old),
        "event_type" => event_type(&mut old),
        "row" => row(&mut old),
        "change" => function_change(&mut old),
        "verification" => verification(&mut old),
        _ => {}
    }
    if kind_of(&old) != "verification" {
        old.insert("v".to_owned(), OLD_VERSION.into());
    } else {
        drop_keys(&mut old, &["v", "kind"]);
    }
    old.into()
}

/// Whether version 1 had such an object: it compared functions only.
pub(crate) fn has(object: &Value) -> bool {
    match object["kind"].as_str() {
        Some("compared") => false,
        Some("change") => object["of"] == "function",
        _ => true,
    }
}

fn kind_of(object: &Map<String, Value>) -> &str {
    object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

fn drop_keys(object: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        object.remove(*key);
    }
}

/// Gives keys their old names.
fn rename(object: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (new, old) in names {
        if let Some(value) = object.remove(*new) {
            object.insert((*old).to_owned(), value);
        }
    }
}

/// Gives texts that are not known their old value.
fn null_is_empty(object: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        if object.get(*key).is_none_or(Value::is_null) {
            object.insert((*key).to_owned(), "".into());
        }
    }
}

/// `lost_by_cause` as an object.
fn causes_by_name(object: &mut Map<String, Value>) {
    let Some(Value::Array(causes)) = object.remove("lost_by_cause") else {
        return;
    };
    let pair = |one: &Value| Some((one["cause"].as_str()?.to_owned(), one["count"].clone()));
    let causes: Map<_, _> = causes.iter().filter_map(pair).collect();
    object.insert("lost_by_cause".to_owned(), causes.into());
}

/// A moment of version 2 as a number of ns since 1970.
fn number_of(ts_ns: &Value) -> Option<u64> {
    ts_ns.as_str()?.parse().ok()
}

/// A moment of version 2 as UTC.
fn stamp_of(ts_ns: &Value) -> Value {
    let stamp = |ns| String::from_utf8_lossy(Stamper::default().stamp(ns)).into_owned();
    number_of(ts_ns).map(stamp).into()
}

fn removals(old: &mut Map<String, Value>) {
    drop_keys(old, &["session", "host", "service", "pid"]);
    let changed = old.remove("changed_ts_ns").unwrap_or_default();
    old.insert("changed_ns".to_owned(), number_of(&changed).into());
    if let Some(Value::Array(last)) = old.get_mut("last") {
        for one in last.iter_mut().filter_map(Value::as_object_mut) {
            let removed = one.remove("removed_ts_ns").unwrap_or_default();
            one.insert("removed_ns".to_owned(), number_of(&removed).into());
        }
    }
}

fn recorded_session(old: &mut Map<String, Value>) {
    if let Some(Value::Array(notices)) = old.remove("notices")
        && let Some(first) = notices.into_iter().next()
    {
        old.insert("notice".to_owned(), first);
    }
    if old.remove("schema_incomplete") == Some(true.into()) {
        old.insert("schema".to_owned(), "incomplete".into());
    }
    for (new, name) in [
        ("start_ts_ns", "start"),
        ("from_ts_ns", "shown_from"),
        ("end_ts_ns", "end"),
    ] {
        let moment = old.remove(new).unwrap_or_default();
        old.insert(name.to_owned(), stamp_of(&moment));
    }
    rename(old, &[("dur_ns", "duration_ns")]);
    old.retain(|_, value| !value.is_null());
}

fn event_type(old: &mut Map<String, Value>) {
    drop_keys(old, &["session", "host", "service", "pid"]);
    rename(old, &[("of", "kind")]);
    null_is_empty(old, &["name", "target", "category", "place"]);
    if old.get("level").is_none_or(Value::is_null) {
        old.insert("level".to_owned(), "-".into());
    }
}

fn row(old: &mut Map<String, Value>) {
    drop_keys(old, &["session", "host", "service", "pid"]);
    drop_keys(old, &["no_start", "unknown_self"]);
    rename(old, &[("of", "kind")]);
    null_is_empty(old, &["target"]);
    match kind_of(old) {
        "profile" => {
            old.insert("kind".to_owned(), "function".into());
            drop_keys(old, &["payload_bytes"]);
            rename(old, &[("target", "module"), ("count", "calls")]);
        }
        "function" => {
            let new = ["tracer", "payload_bytes", "open", "min_ns"];
            drop_keys(old, &new);
            drop_keys(old, &["approximate", "histogram"]);
            rename(old, &[("target", "module"), ("count", "calls")]);
        }
        _ => {
            let new = ["tracer", "open", "not_returned", "no_end", "self_ns"];
            drop_keys(old, &new);
            let new = ["min_ns", "p50_ns", "p99_ns", "approximate", "histogram"];
            drop_keys(old, &new);
            rename(old, &[("count", "events")]);
        }
    }
}

fn function_change(old: &mut Map<String, Value>) {
    old.insert("kind".to_owned(), "function_change".into());
    drop_keys(
        old,
        &["session", "host", "service", "pid", "of", "new", "gone"],
    );
    drop_keys(old, &["change", "change_percent"]);
    for key in ["no_start", "no_end", "total_ns", "p50_ns", "p99_ns"] {
        drop_keys(old, &[&format!("{key}_a"), &format!("{key}_b")]);
    }
    null_is_empty(old, &["target"]);
    rename(old, &[("target", "module")]);
    for (new, name) in [
        ("count", "calls"),
        ("self_ns", "self_ns"),
        ("mean_ns", "mean_ns"),
    ] {
        let mut side = |side| old.remove(&format!("{new}_{side}")).unwrap_or_default();
        let both = vec![side("a"), side("b")];
        old.insert(name.to_owned(), both.into());
    }
}

fn verification(old: &mut Map<String, Value>) {
    drop_keys(old, &["endings", "hosts"]);
    drop_keys(old, &["session", "host", "service", "pid"]);
    drop_keys(old, &["unknown_blocks"]);
    // They had no names of their own there.
    for name in ["removed", "over_budget", "late", "unknown"] {
        let more = old.remove(name).and_then(|more| more.as_u64());
        let missing = old.get("missing").and_then(Value::as_u64);
        if let (Some(more), Some(missing)) = (more, missing) {
            old.insert("missing".to_owned(), (missing + more).into());
        }
    }
    causes_by_name(old);
    for (new, name) in [("first_ts_ns", "first_ts"), ("last_ts_ns", "last_ts")] {
        let moment = old.remove(new).unwrap_or_default();
        old.insert(name.to_owned(), stamp_of(&moment));
    }
}
