//! A batch: which segments it covers, what it adds to the tables, and what the next batch needs. It is
//! an object, and blocks in another one, which are durable before a commit names them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use ringmark_decoder::{CoveredSession, CoveredSlot};
use ringmark_format::Uuid;
use serde_json::{Value, json};

use super::added_file::AddedFile;
use super::forgotten::Forgotten;
use super::objects::Objects;

/// Above all plans and blocks.
pub(crate) const STATE: &str = "tables/state";
/// Version of the object.
const VERSION: u64 = 1;

/// What is known after a batch.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Its number, from 1.
    pub(crate) batch: u64,
    /// Segments that no later batch reads.
    pub(crate) done: BTreeSet<String>,
    pub(crate) sessions: Vec<Known>,
    pub(crate) forgotten: Forgotten,
    /// Segments with pages that came after their session was forgotten. They stay.
    pub(crate) late: BTreeSet<String>,
    /// By table, what is added.
    pub(crate) tables: BTreeMap<String, Vec<AddedFile>>,
}

/// A session, and when it was known to be over, in ns since 1970.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) covered: CoveredSession,
    pub(crate) over_ns: u64,
}

impl Plan {
    /// Puts it; returns its name.
    pub(crate) fn put(&self, objects: &dyn Objects, writer: &str) -> anyhow::Result<String> {
        let name = format!("{STATE}/{:020}-{writer}", self.batch);
        let (plan, blocks) = (format!("{name}.json"), format!("{name}.rms"));
        let mut bytes = Vec::new();
        let sessions = self.sessions.iter().map(|known| {
            let value = session(known, bytes.len());
            bytes.extend_from_slice(&known.covered.blocks);
            value
        });
        let sessions: Vec<Value> = sessions.collect();
        let tables = self.tables.iter().map(|(table, files)| {
            let files = files.iter().map(|file| file.action(0, true));
            (table.clone(), files.collect::<Vec<_>>())
        });
        let tables: BTreeMap<_, _> = tables.collect();
        let text = json!({
            "version": VERSION,
            "batch": self.batch,
            "done": self.done,
            "blocks": blocks,
            "sessions": sessions,
            "forgotten": self.forgotten.to_value(),
            "late": self.late,
            "tables": tables,
        });
        objects
            .put(&blocks, &bytes)
            .with_context(|| blocks.clone())?;
        let text = format!("{text}\n");
        objects
            .put(&plan, text.as_bytes())
            .with_context(|| plan.clone())?;
        Ok(plan)
    }

    /// Gets one that was committed.
    pub(crate) fn get(objects: &dyn Objects, name: &str) -> anyhow::Result<Self> {
        let bytes = objects.get(name).with_context(|| name.to_owned())?;
        let read = || -> anyhow::Result<Self> {
            let value: Value = serde_json::from_slice(&bytes)?;
            if value["version"] != VERSION {
                bail!(
                    "found version {}, expected {VERSION}: use the version of ringmark-fleet that wrote it",
                    value["version"]
                );
            }
            let blocks = value["blocks"].as_str().context("expected blocks")?;
            let blocks = objects.get(blocks).with_context(|| blocks.to_owned())?;
            of_value(&value, &blocks).context("expected the plan of a batch")
        };
        read().with_context(|| name.to_owned())
    }
}

fn session(known: &Known, from: usize) -> Value {
    let of = &known.covered;
    let slots = of.slots.iter().map(|(index, slot)| {
        json!([
            index,
            slot.next_page,
            slot.events,
            slot.tick,
            slot.lost,
            slot.lost_since,
            slot.losses_after
        ])
    });
    json!({
        "host": hex(&of.host),
        "session": of.session.to_string(),
        "over_ns": if of.is_over { Value::from(known.over_ns) } else { Value::Null },
        "lost_since": of.lost_since,
        "from": from,
        "bytes": of.blocks.len(),
        "slots": slots.collect::<Vec<_>>(),
    })
}

fn of_value(value: &Value, blocks: &[u8]) -> Option<Plan> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let texts = |value: &Value| -> Option<BTreeSet<String>> {
        value.as_array()?.iter().map(text).collect()
    };
    let sessions = value["sessions"].as_array()?.iter();
    let sessions: Option<_> = sessions.map(|of| known(of, blocks)).collect();
    let mut tables = BTreeMap::new();
    for (table, files) in value["tables"].as_object()? {
        let files = files.as_array()?.iter();
        let files: Option<_> = files
            .map(|file| AddedFile::of_action(&file["add"]))
            .collect();
        tables.insert(table.clone(), files?);
    }
    Some(Plan {
        batch: value["batch"].as_u64()?,
        done: texts(&value["done"])?,
        sessions: sessions?,
        // Former versions have neither.
        forgotten: Forgotten::of_value(&value["forgotten"]).unwrap_or_default(),
        late: texts(&value["late"]).unwrap_or_default(),
        tables,
    })
}

fn known(value: &Value, blocks: &[u8]) -> Option<Known> {
    let session = uuid(value["session"].as_str()?)?;
    let mut covered = CoveredSession::new(bytes(value["host"].as_str()?)?, session);
    covered.is_over = !value["over_ns"].is_null();
    covered.lost_since = value["lost_since"].as_u64()?;
    let from = usize::try_from(value["from"].as_u64()?).ok()?;
    let length = usize::try_from(value["bytes"].as_u64()?).ok()?;
    covered.blocks = blocks.get(from..from.checked_add(length)?)?.to_vec();
    for slot in value["slots"].as_array()? {
        let at = |place: usize| slot[place].as_u64();
        let losses = slot[6].as_array()?.iter().map(Value::as_u64);
        let of = CoveredSlot {
            next_page: at(1)?,
            events: at(2)?,
            tick: at(3)?,
            lost: at(4)?,
            lost_since: at(5)?,
            losses_after: losses.collect::<Option<_>>()?,
        };
        covered.slots.insert(u32::try_from(at(0)?).ok()?, of);
    }
    Some(Known {
        covered,
        over_ns: value["over_ns"].as_u64().unwrap_or(0),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    let pairs = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    pairs.collect()
}

fn uuid(text: &str) -> Option<Uuid> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    Some(Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes()))
}
