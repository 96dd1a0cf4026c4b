//! The JSON of every command: it is as its schema and its page say.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use common::Stage;
use ringmark_tests::json_schema::{checked, errors, kinds, schema};
use ringmark_tests::workspace_root;
use serde_json::{Value, json};

/// The objects of a command's output, each checked.
fn objects(stage: &Stage, arguments: &str) -> Vec<Value> {
    let arguments: Vec<_> = arguments.split(' ').collect();
    checked(&stage.run(&arguments).stdout_text())
}

/// Kinds of objects that the commands of this test print.
const KINDS: [&str; 12] = [
    "counter",
    "event",
    "event_type",
    "flow",
    "lost",
    "recorded_session",
    "recording",
    "row",
    "session",
    "span",
    "top",
    "verification",
];

#[test]
fn what_commands_print_is_as_the_schema_says() {
    let stage = Stage::new("json-schema");
    let traced = ["record", "-o", "a.rmk", "--status-file", "status", "--"];
    let program = common::traced_program();
    let _ = stage
        .run(&[&traced[..], &[&program, "2", "60", "0", "mix"]].concat())
        .expect_code(0);
    let small = stage.start_with("ring=16K,page=4K", &["1", "20000", "0", "hold=60000"], 1);
    let pid = small.id().to_string();
    let _ = stage.run(&["snapshot", "-p", &pid, "-o", "b.rmk"]);
    fs::copy(
        workspace_root().join("format-spec/vectors/v1/damaged.rmk"),
        stage.path("damaged.rmk"),
    )
    .unwrap();
    let mut seen = BTreeSet::new();
    let mut see = |found: Vec<Value>| {
        assert!(!found.is_empty());
        seen.extend(found.iter().map(|o| o["kind"].as_str().unwrap().to_owned()));
        found
    };
    let events = see(objects(&stage, "cat a.rmk --json"));
    assert_eq!(events.len(), 120);
    see(objects(&stage, "cat b.rmk --json"));
    see(objects(&stage, &format!("cat -p {pid} --json")));
    see(objects(&stage, "report a.rmk --json"));
    see(objects(&stage, "events a.rmk --json"));
    see(objects(&stage, &format!("events -p {pid} --json")));
    see(objects(&stage, "list a.rmk b.rmk --json"));
    let sessions = see(objects(
        &stage,
        &format!("list -v -p {pid} --interval 10ms --json"),
    ));
    assert_eq!(sessions[0]["threads"].as_array().map(Vec::len), Some(1));
    see(objects(
        &stage,
        &format!("top -p {pid} --once --interval 100ms --json"),
    ));
    see(objects(&stage, "verify a.rmk --json"));
    see(objects(&stage, "verify damaged.rmk --json"));
    see(objects(&stage, "list --json"));
    see(checked(&fs::read_to_string(stage.path("status")).unwrap()));
    assert_eq!(seen, KINDS.map(str::to_owned).into());
    // Who and where: in each line, and not null.
    for event in &events {
        assert!(
            event["host"].is_string() && event["pid"].is_u64(),
            "{event}"
        );
        assert!(
            event["ts_ns"].is_string() && event["t_ns"].is_u64(),
            "{event}"
        );
    }
}

/// Every vector of the format, shown with every command: no input makes another form.
#[test]
fn unusual_files_are_shown_as_the_schema_says() {
    let stage = Stage::new("json-vectors");
    let vectors = workspace_root().join("format-spec/vectors/v1");
    let mut lines = 0;
    for file in fs::read_dir(&vectors).unwrap().flatten() {
        let path = file.path().display().to_string();
        if path.ends_with(".rmk") {
            for command in ["cat", "verify", "list", "report", "events"] {
                let found = stage.run(&[command, &path, "--json"]);
                lines += checked(&found.stdout_text()).len();
            }
        }
    }
    assert!(lines > 400, "{lines}");
}

#[test]
fn arguments_keep_their_type_and_their_value() {
    let stage = Stage::new("json-args");
    let kinds = workspace_root().join("format-spec/vectors/v1/kinds.rmk");
    let found = stage.run(&["cat", &kinds.display().to_string(), "--json"]);
    let text = found.stdout_text();
    let event = &checked(&text)[0];
    let args = &event["args"];
    assert_eq!(args["u64"], json!(u64::MAX), "a number, whatever its size");
    assert_eq!(args["i64"], json!(i64::MIN));
    assert_eq!(args["u128"], json!(u128::MAX.to_string()), "always a text");
    assert_eq!((&args["nan"], &args["inf"]), (&Value::Null, &Value::Null));
    assert_eq!(args["f64"], json!(-2.5));
    assert_eq!(args["bytes"], "00ff");
    assert_eq!(
        event["exact"],
        json!({
            "u64": u64::MAX.to_string(),
            "i64": i64::MIN.to_string(),
            "nan": "NaN",
            "inf": "-inf",
            "str": "6122625c630affc3a9",
        })
    );
}

/// The examples of the page, as (line number, object).
fn examples() -> Vec<(usize, Value)> {
    let page = fs::read_to_string(workspace_root().join("format-spec/JSON.md")).unwrap();
    let (mut found, mut is_json) = (Vec::new(), false);
    for (number, line) in page.lines().enumerate() {
        if line.starts_with("```") {
            is_json = line == "```json";
        } else if is_json {
            let object = serde_json::from_str(line);
            let object = object.unwrap_or_else(|e| panic!("JSON.md:{}: {e}", number + 1));
            found.push((number + 1, object));
        }
    }
    found
}

#[test]
fn the_page_has_an_example_of_each_kind_and_says_what_each_key_is() {
    let mut shown = BTreeSet::new();
    for (line, object) in examples() {
        assert_eq!(errors(&object), [""; 0], "JSON.md:{line}");
        shown.insert(object["kind"].as_str().unwrap().to_owned());
    }
    // Kinds of events differ in nothing but their name.
    let missing: Vec<_> = kinds()
        .into_iter()
        .filter(|kind| schema()["$defs"].get(kind).is_some() && !shown.contains(*kind))
        .collect();
    assert_eq!(missing, [""; 0], "kinds without an example in JSON.md");
    let page = fs::read_to_string(workspace_root().join("format-spec/JSON.md")).unwrap();
    let said = |name: &str| page.contains(&format!("`{name}`"));
    let silent: Vec<_> = properties().into_keys().filter(|key| !said(key)).collect();
    assert_eq!(silent, [""; 0], "keys that JSON.md does not name");
    let unsaid: Vec<_> = kinds().into_iter().filter(|kind| !said(kind)).collect();
    assert_eq!(unsaid, [""; 0], "kinds that JSON.md does not name");
}

/// The types that each key has in any object of the schema, null left out.
fn properties() -> BTreeMap<String, BTreeSet<String>> {
    let definitions = schema()["$defs"].as_object().unwrap();
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for definition in definitions.values() {
        let Some(properties) = definition["properties"].as_object() else {
            continue;
        };
        for (key, value) in properties {
            found.entry(key.clone()).or_default().extend(types(value));
        }
    }
    found
}

fn types(value: &Value) -> Vec<String> {
    if let Some(name) = value["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap();
        return types(&schema()["$defs"][name]);
    }
    if let Some(several) = value["anyOf"].as_array() {
        return several.iter().flat_map(types).collect();
    }
    let type_of = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Number(_) => "integer",
        _ => "null",
    };
    let mut found: Vec<_> = match (&value["type"], &value["enum"], &value["const"]) {
        (Value::String(one), ..) => vec![one.clone()],
        (Value::Array(several), ..) => several
            .iter()
            .map(|t| t.as_str().unwrap().to_owned())
            .collect(),
        (_, Value::Array(values), _) => values.iter().map(|v| type_of(v).to_owned()).collect(),
        (.., value) => vec![type_of(value).to_owned()],
    };
    found.retain(|name| name != "null");
    found
}

#[test]
fn a_key_has_one_type_in_every_object() {
    for (key, types) in properties() {
        assert_eq!(types.len(), 1, "{key}: {types:?}");
    }
    let required = |definition: &Value| {
        let keys = definition["properties"].as_object().map_or(0, |p| p.len());
        keys == definition["required"].as_array().map_or(0, Vec::len)
    };
    let definitions = schema()["$defs"].as_object().unwrap();
    assert!(
        definitions.values().all(required),
        "a key that may be absent"
    );
}

/// A definition that is broken on purpose is found.
#[test]
fn the_schema_refuses_what_it_should() {
    let (_, event) = &examples()[0];
    let with = |key: &str, value: Value| {
        let mut changed = event.clone();
        changed[key] = value;
        errors(&changed)
    };
    assert_eq!(with("t_ns", json!(7)), [""; 0]);
    for (key, value) in [
        ("v", json!(1)),
        ("kind", json!("unheard of")),
        ("session", json!("07070707")),
        ("ts_ns", json!(1_700_000_000_000_000_000_u64)),
        ("t_ns", json!("7")),
        ("span", json!(17)),
        ("level", json!("loud")),
        ("comm", json!("worker")),
        ("args", Value::Null),
    ] {
        assert_ne!(with(key, value), [""; 0], "{key}");
    }
    let mut without = event.clone();
    without.as_object_mut().unwrap().remove("dur_ns");
    assert_ne!(errors(&without), [""; 0]);
}
