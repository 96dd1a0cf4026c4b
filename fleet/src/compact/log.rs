//! The Delta log of a table: which files it has, and what every writer did.
//!
//! Each version is one object, created and never replaced: the writer that creates it has committed. It is read
//! from the snapshot on that the last checkpoint left; checkpoints are for engines.

use std::io;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::objects::Objects;
use super::snapshot::{APP, Snapshot};
use super::time::{HOUR_NS, now_ns};

/// For how long the work for a commit may take: files that no log names are deleted after twice as long.
const TAKES_NS: u64 = 12 * HOUR_NS;

/// Checks that the files of a commit are not so old that another run may delete them.
pub(crate) fn check_in_time(begun_ns: u64) -> anyhow::Result<()> {
    if now_ns().saturating_sub(begun_ns) > TAKES_NS {
        bail!("it took more than 12 hours, and another run may delete its files: run it again");
    }
    Ok(())
}

/// The log of one table.
pub(crate) struct Log<'o> {
    objects: &'o dyn Objects,
    /// Directory of the table.
    table: String,
    /// When the work began that is committed.
    begun_ns: u64,
}

impl<'o> Log<'o> {
    pub(crate) fn new(objects: &'o dyn Objects, table: &str) -> Self {
        let (table, begun_ns) = (table.to_owned(), now_ns());
        Self {
            objects,
            table,
            begun_ns,
        }
    }

    fn name(&self, version: u64) -> String {
        format!("{}/_delta_log/{version:020}.json", self.table)
    }

    /// The table as it is now.
    pub(crate) fn snapshot(&self) -> anyhow::Result<Snapshot> {
        self.up_to(u64::MAX)
    }

    /// The table as it was at a version, or as it is now.
    pub(crate) fn up_to(&self, last: u64) -> anyhow::Result<Snapshot> {
        let kept = Snapshot::kept(self.objects, &self.table)?;
        // Another run may have kept a later one.
        let mut snapshot = kept.filter(|kept| kept.next <= last).unwrap_or_default();
        let first = snapshot.next;
        loop {
            if snapshot.next > last {
                return Ok(snapshot);
            }
            let name = self.name(snapshot.next);
            let bytes = match self.objects.get(&name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.check_end(first, snapshot.next)?;
                    return Ok(snapshot);
                }
                read => read.with_context(|| name.clone())?,
            };
            let text = std::str::from_utf8(&bytes).with_context(|| name.clone())?;
            for line in text.lines().filter(|line| !line.is_empty()) {
                let action: Value = serde_json::from_str(line)
                    .with_context(|| format!("{name}: expected a JSON object in each line"))?;
                snapshot.take(&action).with_context(|| name.clone())?;
            }
            snapshot.next += 1;
        }
    }

    /// Checks that no version follows the one that was not found: an engine that clears old versions leaves a
    /// log that cannot be read from its start, and rows would be written twice.
    fn check_end(&self, first: u64, next: u64) -> anyhow::Result<()> {
        let directory = format!("{}/_delta_log", self.table);
        let names = self
            .objects
            .list(&directory)
            .with_context(|| directory.clone())?;
        let later = names
            .into_iter()
            .find(|name| *name > self.name(next) && name.ends_with(".json"));
        match later {
            Some(later) => bail!(
                "{}: not found, though {later} is; expected every version from {first}: give the tables another \
                 directory with --into, and keep engines from clearing the log",
                self.name(next)
            ),
            None => Ok(()),
        }
    }

    /// Creates a version; `false`: another writer has.
    pub(crate) fn commit(&self, version: u64, actions: &[Value]) -> anyhow::Result<bool> {
        check_in_time(self.begun_ns)?;
        let mut text = String::new();
        for action in actions {
            text += &action.to_string();
            text.push('\n');
        }
        let name = self.name(version);
        self.objects
            .create(&name, text.as_bytes())
            .with_context(|| name)
    }
}

/// The actions that make a table: they stand in its first version.
pub(crate) fn first(id: &str, schema: &arrow_schema::Schema, now_ms: u64) -> Vec<Value> {
    let mut fields: Vec<Value> = schema.fields().iter().map(|of| field(of)).collect();
    for (name, kind) in [("date", "date"), ("hour", "integer")] {
        fields.push(json!({"name": name, "type": kind, "nullable": true, "metadata": {}}));
    }
    let schema = json!({"type": "struct", "fields": fields}).to_string();
    vec![
        json!({"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}),
        json!({"metaData": {
            "id": id,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": ["date", "hour"],
            "configuration": {},
            "createdTime": now_ms,
        }}),
    ]
}

fn field(field: &arrow_schema::Field) -> Value {
    use arrow_schema::DataType;
    let kind = match field.data_type() {
        DataType::Int64 => "long",
        DataType::Int32 => "integer",
        DataType::Boolean => "boolean",
        _ => "string",
    };
    json!({"name": field.name(), "type": kind, "nullable": true, "metadata": {}})
}

/// The action that says who merges files.
pub(crate) fn about_merge(writer: &str, now_ms: u64) -> Value {
    about_files("OPTIMIZE", writer, now_ms)
}

/// The action that says who removes rows.
pub(crate) fn about_removal(writer: &str, now_ms: u64) -> Value {
    about_files("DELETE", writer, now_ms)
}

fn about_files(operation: &str, writer: &str, now_ms: u64) -> Value {
    json!({"commitInfo": {
        "timestamp": now_ms,
        "operation": operation,
        "operationParameters": {},
        "engineInfo": concat!("ringmark-fleet/", env!("CARGO_PKG_VERSION")),
        "ringmark": {"writer": writer},
    }})
}

/// The actions that say who commits what.
pub(crate) fn about(batch: u64, (writer, plan): (&str, &str), now_ms: u64) -> Vec<Value> {
    vec![
        json!({"commitInfo": {
            "timestamp": now_ms,
            "operation": "WRITE",
            "operationParameters": {},
            "engineInfo": concat!("ringmark-fleet/", env!("CARGO_PKG_VERSION")),
            "ringmark": {"batch": batch, "writer": writer, "plan": plan},
        }}),
        json!({"txn": {"appId": APP, "version": batch, "lastUpdated": now_ms}}),
    ]
}
