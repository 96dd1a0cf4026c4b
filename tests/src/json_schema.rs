//! The schema of the JSON that commands print, and objects compared with it.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use crate::dirs::workspace_root;

/// The schema itself, `format-spec/json.schema.json`.
///
/// # Panics
/// When it cannot be read.
#[must_use]
pub fn schema() -> &'static Value {
    static SCHEMA: OnceLock<Value> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let text = fs::read_to_string(workspace_root().join("format-spec/json.schema.json"));
        serde_json::from_str(&text.expect("the schema")).expect("the schema is JSON")
    })
}

fn validator() -> &'static Validator {
    static VALIDATOR: OnceLock<Validator> = OnceLock::new();
    VALIDATOR.get_or_init(|| jsonschema::draft202012::new(schema()).expect("a sound schema"))
}

/// What is wrong with an object, one line each; empty if it is as the schema says.
#[must_use]
pub fn errors(object: &Value) -> Vec<String> {
    let errors = validator().iter_errors(object);
    errors
        .map(|error| format!("at {:?}: {error}", error.instance_path().to_string()))
        .collect()
}

/// Checks every line of a command's output: an object of the schema. Returns the
/// objects.
///
/// # Panics
/// When a line is not as the schema says.
#[track_caller]
#[must_use]
pub fn checked(lines: &str) -> Vec<Value> {
    lines.lines().map(check_line).collect()
}

#[track_caller]
fn check_line(line: &str) -> Value {
    let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
    let errors = errors(&object);
    assert!(errors.is_empty(), "{line}\n{}", errors.join("\n"));
    object
}

/// The kinds of objects that the schema knows.
///
/// # Panics
/// When the schema has no list of them.
#[must_use]
pub fn kinds() -> BTreeSet<&'static str> {
    let kinds = schema()["properties"]["kind"]["enum"].as_array();
    let kinds = kinds.expect("a list of kinds").iter();
    kinds.map(|kind| kind.as_str().expect("a text")).collect()
}
