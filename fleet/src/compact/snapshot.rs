//! What a log says up to a version.

use std::collections::BTreeMap;
use std::io;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::added_file::AddedFile;
use super::objects::Objects;
use super::tables::STATE;
use super::time::HOUR_NS;

/// Name of the writer in `txn` actions.
pub(crate) const APP: &str = "ringmark-compact";
/// For how long it is known that a file was removed: engines that delete files look at it.
pub(crate) const REMOVED_NS: u64 = 7 * 24 * HOUR_NS;
/// The actions that are understood.
const ACTIONS: [&str; 6] = ["metaData", "protocol", "add", "remove", "txn", "commitInfo"];
/// The newest versions of the protocol that are understood.
const READER: u64 = 1;
const WRITER: u64 = 2;
/// Version of the object with a snapshot.
const FORMAT: u64 = 1;

/// A table as its log says, up to a version.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The version that comes next.
    pub(crate) next: u64,
    pub(crate) files: BTreeMap<String, AddedFile>,
    /// Files that were replaced, and when, in ms since 1970.
    pub(crate) removed: BTreeMap<String, u64>,
    /// Number of the last batch that was committed, and the object with its plan; 0: none was.
    pub(crate) batch: u64,
    pub(crate) plan: String,
    /// What the table is, and what its readers must know.
    pub(crate) meta_data: Value,
    pub(crate) protocol: Value,
}

impl Snapshot {
    /// Takes an action of the log.
    ///
    /// # Errors
    /// It is one that is not understood: what is there, and what may be deleted, is then not known.
    pub(crate) fn take(&mut self, action: &Value) -> anyhow::Result<()> {
        let object = action.as_object().context("expected an action")?;
        for (kind, of) in object {
            match kind.as_str() {
                "metaData" => self.meta_data = of.clone(),
                "protocol" => self.protocol = understood(of)?.clone(),
                "add" => self.add(of)?,
                "remove" => self.remove(of)?,
                "txn" if of["appId"] == APP => {
                    self.batch = of["version"].as_u64().unwrap_or(0).max(self.batch);
                }
                "commitInfo" => {
                    if let Some(plan) = of["ringmark"]["plan"].as_str() {
                        self.plan = plan.to_owned();
                    }
                }
                "txn" => {}
                other => bail!("found the action {other}, expected one of {ACTIONS:?}"),
            }
        }
        Ok(())
    }

    fn add(&mut self, of: &Value) -> anyhow::Result<()> {
        let file = AddedFile::of_action(of).with_context(|| {
            format!(
                "add of {}: expected a path inside the table, partitionValues with date and hour, size, and stats with \
                 numRecords, without a deletion vector",
                of["path"]
            )
        })?;
        // It may have come back, as other engines restore tables.
        self.removed.remove(&file.path);
        self.files.insert(file.path.clone(), file);
        Ok(())
    }

    fn remove(&mut self, of: &Value) -> anyhow::Result<()> {
        let path = of["path"].as_str().context("remove: expected a path")?;
        let at = of["deletionTimestamp"].as_u64();
        self.files.remove(path);
        self.removed.insert(path.to_owned(), at.unwrap_or(u64::MAX));
        Ok(())
    }

    /// Keeps it for later readers of the log, in place of the versions up to it.
    pub(crate) fn keep(
        &self,
        objects: &dyn Objects,
        (table, now_ns): (&str, u64),
    ) -> anyhow::Result<()> {
        let files = self.files.values();
        let oldest_ms = now_ns.saturating_sub(REMOVED_NS) / 1_000_000;
        let removed = self.removed.iter().filter(|(_, ms)| **ms >= oldest_ms);
        let text = json!({
            "format": FORMAT,
            "next": self.next,
            "files": files.map(|file| file.action(file.added_ms, false)).collect::<Vec<_>>(),
            "removed": removed.collect::<BTreeMap<_, _>>(),
            "batch": self.batch,
            "plan": self.plan,
            "metaData": self.meta_data,
            "protocol": self.protocol,
        });
        let name = kept_name(table);
        objects
            .put(&name, text.to_string().as_bytes())
            .context(name)
    }

    /// The one that was kept; `None`: none was.
    pub(crate) fn kept(objects: &dyn Objects, table: &str) -> anyhow::Result<Option<Self>> {
        let name = kept_name(table);
        let bytes = match objects.get(&name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| name.clone())?,
        };
        let value: Value = serde_json::from_slice(&bytes).with_context(|| name.clone())?;
        let expected = || {
            format!(
                "{name}: expected what a log says, in format {FORMAT}: delete it, and run it again"
            )
        };
        Ok(Some(Self::of_value(&value).with_context(expected)?))
    }

    fn of_value(value: &Value) -> Option<Self> {
        if value["format"] != FORMAT {
            return None;
        }
        let files = value["files"].as_array()?.iter();
        let files = files.map(|file| AddedFile::of_action(&file["add"]));
        let files = files.map(|file| file.map(|file| (file.path.clone(), file)));
        let removed = value["removed"].as_object()?.iter();
        let removed = removed.map(|(path, ms)| Some((path.clone(), ms.as_u64()?)));
        Some(Self {
            next: value["next"].as_u64()?,
            files: files.collect::<Option<_>>()?,
            removed: removed.collect::<Option<_>>()?,
            batch: value["batch"].as_u64()?,
            plan: value["plan"].as_str()?.to_owned(),
            meta_data: value["metaData"].clone(),
            protocol: value["protocol"].clone(),
        })
    }
}

/// A protocol, if its tables mean what ours do.
fn understood(protocol: &Value) -> anyhow::Result<&Value> {
    let version = |which: &str| protocol[which].as_u64().unwrap_or(u64::MAX);
    let (reader, writer) = (version("minReaderVersion"), version("minWriterVersion"));
    if reader > READER || writer > WRITER {
        bail!(
            "protocol: found {protocol}, expected minReaderVersion {READER} and minWriterVersion {WRITER} at most: an \
             engine has upgraded the table"
        );
    }
    Ok(protocol)
}

fn kept_name(table: &str) -> String {
    let table = table.rsplit('/').next().unwrap_or_default();
    format!("{STATE}/log-{table}.json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_removed_and_added_again_is_there() {
        let mut file = AddedFile::of_hour_of("2026-11-24", 16);
        file.path = "a.parquet".to_owned();
        let mut now = Snapshot::default();
        for action in [
            file.action(1, true),
            file.removal(2, true),
            file.action(3, true),
        ] {
            now.take(&action).expect("an action");
        }
        assert!(now.removed.is_empty() && now.files.contains_key("a.parquet"));
        now.take(&file.removal(4, true)).expect("an action");
        assert!(now.removed.contains_key("a.parquet") && now.files.is_empty());
    }

    #[test]
    fn what_is_not_understood_stops_the_reader_with_its_name() {
        let mut file = AddedFile::of_hour_of("2026-11-24", 16);
        file.path = "a.parquet".to_owned();
        let known = file.action(1, true);
        let with = |key: &str, value: Value| {
            let mut action = known.clone();
            action["add"][key] = value;
            action
        };
        for (action, name) in [
            (with("stats", Value::Null), "a.parquet"),
            (with("stats", "{}".into()), "a.parquet"),
            (with("path", "../a.parquet".into()), "../a.parquet"),
            (
                with("deletionVector", json!({"storageType": "u"})),
                "a.parquet",
            ),
            (json!({"remove": {}}), "remove"),
            (json!({"domainMetadata": {"domain": "x"}}), "domainMetadata"),
            (
                json!({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}),
                "minReaderVersion",
            ),
            (json!({"protocol": {}}), "protocol"),
            (json!(7), "action"),
        ] {
            let mut now = Snapshot::default();
            now.take(&known).expect("an action");
            let error = now.take(&action).expect_err("not understood");
            assert!(format!("{error:#}").contains(name), "{action}: {error:#}");
            assert!(now.removed.is_empty() && now.files.contains_key("a.parquet"));
        }
    }
}
