//! Checkpoints of logs: all that a log says up to a version, as one Parquet file, for engines that would read hundreds of
//! versions else. `compact` itself reads a snapshot.

use std::io::ErrorKind;
use std::sync::Arc;

use anyhow::{Context, Result};
use arrow_array::builder::{ListBuilder, MapBuilder, MapFieldNames, StringBuilder};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Int32Array, Int64Array, RecordBatch, StringArray, StructArray,
    new_null_array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::{Value, json};

use super::log::Log;
use super::objects::Objects;
use super::snapshot::{APP, REMOVED_NS, Snapshot};
use super::tables::TABLES;

/// Versions between two checkpoints.
const EVERY: u64 = 100;
/// Writes the checkpoints that are due.
pub(crate) fn write(objects: &dyn Objects, now_ns: u64) -> Result<()> {
    for table in TABLES {
        let table = format!("tables/{table}");
        of_table(objects, (&table, now_ns)).with_context(|| table.clone())?;
    }
    Ok(())
}

fn of_table(objects: &dyn Objects, (table, now_ns): (&str, u64)) -> Result<()> {
    let log = Log::new(objects, table);
    let due = log.snapshot()?.next.saturating_sub(1) / EVERY * EVERY;
    let last = format!("{table}/_delta_log/_last_checkpoint");
    let known = match objects.get(&last) {
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        read => {
            let value: Value = serde_json::from_slice(&read.with_context(|| last.clone())?)?;
            value["version"].as_u64().unwrap_or(0)
        }
    };
    if due <= known {
        return Ok(());
    }
    let at = log.up_to(due)?;
    let (bytes, actions) = checkpoint(&at, now_ns)?;
    let name = format!("{table}/_delta_log/{due:020}.checkpoint.parquet");
    objects.put(&name, &bytes).context(name)?;
    at.keep(objects, (table, now_ns))?;
    let text = json!({"version": due, "size": actions}).to_string();
    objects.put(&last, text.as_bytes()).context(last)
}

/// The bytes of a checkpoint, and how many actions it has.
fn checkpoint(at: &Snapshot, now_ns: u64) -> Result<(Vec<u8>, usize)> {
    let columns = [
        ("txn", txn(at)?),
        ("add", adds(at)?),
        ("remove", removes(at, now_ns)?),
        ("metaData", meta_data(&at.meta_data)?),
        ("protocol", protocol(&at.protocol)?),
    ];
    let fields = columns
        .iter()
        .map(|(name, of)| Field::new(*name, of.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), None)?;
    let mut actions = 0;
    for (place, (_, rows)) in columns.iter().enumerate() {
        let null = |of: &ArrayRef| new_null_array(of.data_type(), rows.len());
        let others = columns.iter().map(|(_, of)| null(of));
        let mut of_rows: Vec<_> = others.collect();
        of_rows[place] = rows.clone();
        writer.write(&RecordBatch::try_new(schema.clone(), of_rows)?)?;
        actions += rows.len();
    }
    Ok((writer.into_inner()?, actions))
}

fn txn(at: &Snapshot) -> Result<ArrayRef> {
    // There is none before the first batch.
    let batches: Vec<_> = Some(at.batch as i64)
        .filter(|batch| *batch > 0)
        .into_iter()
        .collect();
    of(vec![
        ("appId", texts(batches.iter().map(|_| APP))),
        ("version", Arc::new(Int64Array::from(batches))),
    ])
}

fn adds(at: &Snapshot) -> Result<ArrayRef> {
    let actions = at
        .files
        .values()
        .map(|file| file.action(file.added_ms, false)["add"].take());
    let actions: Vec<Value> = actions.collect();
    of(vec![
        ("path", texts(actions.iter().map(|add| text(&add["path"])))),
        (
            "partitionValues",
            map(actions.iter().map(|add| &add["partitionValues"]))?,
        ),
        ("size", longs(actions.iter().map(|add| &add["size"]))),
        (
            "modificationTime",
            longs(actions.iter().map(|add| &add["modificationTime"])),
        ),
        ("dataChange", falses(actions.len())),
        (
            "stats",
            texts(actions.iter().map(|add| text(&add["stats"]))),
        ),
    ])
}

fn removes(at: &Snapshot, now_ns: u64) -> Result<ArrayRef> {
    let oldest_ms = now_ns.saturating_sub(REMOVED_NS) / 1_000_000;
    let removed: Vec<_> = at
        .removed
        .iter()
        .filter(|(_, ms)| **ms >= oldest_ms)
        .collect();
    let times = removed
        .iter()
        .map(|(_, ms)| i64::try_from(**ms).unwrap_or(i64::MAX));
    of(vec![
        ("path", texts(removed.iter().map(|(path, _)| path.as_str()))),
        (
            "deletionTimestamp",
            Arc::new(Int64Array::from_iter_values(times)),
        ),
        ("dataChange", falses(removed.len())),
    ])
}

fn meta_data(action: &Value) -> Result<ArrayRef> {
    let one = |value: &Value| texts([text(value)].into_iter());
    let format = of(vec![
        ("provider", one(&action["format"]["provider"])),
        ("options", map([&action["format"]["options"]].into_iter())?),
    ])?;
    let element = Field::new("element", DataType::Utf8, true);
    let mut partitions = ListBuilder::new(StringBuilder::new()).with_field(element);
    let names = action["partitionColumns"].as_array().into_iter().flatten();
    partitions.append_value(names.map(|name| name.as_str()));
    of(vec![
        ("id", one(&action["id"])),
        ("format", format),
        ("schemaString", one(&action["schemaString"])),
        ("partitionColumns", Arc::new(partitions.finish())),
        (
            "configuration",
            map([&action["configuration"]].into_iter())?,
        ),
        ("createdTime", longs([&action["createdTime"]].into_iter())),
    ])
}

fn protocol(action: &Value) -> Result<ArrayRef> {
    let version = |which: &str| -> ArrayRef {
        let version = action[which]
            .as_i64()
            .and_then(|version| i32::try_from(version).ok());
        Arc::new(Int32Array::from(vec![version]))
    };
    of(vec![
        ("minReaderVersion", version("minReaderVersion")),
        ("minWriterVersion", version("minWriterVersion")),
    ])
}

/// Actions, by their fields.
fn of(fields: Vec<(&str, ArrayRef)>) -> Result<ArrayRef> {
    let types = fields
        .iter()
        .map(|(name, of)| Field::new(*name, of.data_type().clone(), true));
    let types: Vec<_> = types.collect();
    let arrays = fields.into_iter().map(|(_, array)| array).collect();
    Ok(Arc::new(StructArray::try_new(types.into(), arrays, None)?))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn texts<'t>(all: impl Iterator<Item = &'t str>) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(all))
}

fn longs<'v>(all: impl Iterator<Item = &'v Value>) -> ArrayRef {
    Arc::new(all.map(Value::as_i64).collect::<Int64Array>())
}

fn falses(count: usize) -> ArrayRef {
    Arc::new(BooleanArray::from(vec![false; count]))
}

/// Objects of texts.
fn map<'v>(all: impl Iterator<Item = &'v Value>) -> Result<ArrayRef> {
    let names = MapFieldNames {
        entry: "key_value".to_owned(),
        key: "key".to_owned(),
        value: "value".to_owned(),
    };
    let mut maps = MapBuilder::new(Some(names), StringBuilder::new(), StringBuilder::new());
    for object in all {
        for (key, value) in object.as_object().into_iter().flatten() {
            maps.keys().append_value(key);
            maps.values().append_value(text(value));
        }
        maps.append(true)?;
    }
    Ok(Arc::new(maps.finish()))
}
