//! A batch: which segments it covers, what it adds to the tables, and what the next batch needs. It is
//! an object, and blocks in another one, which are durable before a commit names them.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail};
use ringmark_decoder::{CoveredSession, CoveredSlot};
use ringmark_format::Uuid;
use serde_json::{Value, json};

use super::added_file::AddedFile;
use super::forgotten::Forgotten;
use super::given_up::GivenUp;
use super::log::Log;
use super::objects::Objects;
use super::tables::{Paths, STATE, TABLES};

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
    /// Sessions that are over since their hosts said nothing for long, by the batch that gave them up.
    pub(crate) given_up: Vec<GivenUp>,
    /// Segments with pages that came after their session was forgotten. They stay.
    pub(crate) late: BTreeSet<String>,
    /// By table, what is added.
    pub(crate) tables: BTreeMap<String, Vec<AddedFile>>,
    /// Files that leave their tables, by table.
    pub(crate) removed: Paths,
}

/// A session, and when it was known to be over, in ns since 1970.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) covered: CoveredSession,
    pub(crate) over_ns: u64,
}

impl Known {
    /// Whether it is this session of this host.
    pub(crate) fn is_of(&self, (host, session): (&[u8], Uuid)) -> bool {
        self.covered.session == session && self.covered.host == host
    }
}

impl Plan {
    /// The one of the batch that was decided last.
    pub(crate) fn decided(objects: &dyn Objects) -> anyhow::Result<Self> {
        let decided = Log::new(objects, &format!("tables/{}", TABLES[0])).snapshot()?;
        Self::of_batch(objects, (decided.batch, &decided.plan))
    }

    /// The one of a batch, by its number and its name.
    pub(crate) fn of_batch(
        objects: &dyn Objects,
        (batch, name): (u64, &str),
    ) -> anyhow::Result<Self> {
        match batch {
            0 => Ok(Self::default()),
            _ => Self::get(objects, name),
        }
    }
    /// Puts it; returns its name.
    pub(crate) fn put(&self, objects: &dyn Objects, writer: &str) -> anyhow::Result<String> {
        let name = format!("{STATE}/{:020}-{writer}", self.batch);
        let (plan, blocks) = (format!("{name}.json"), format!("{name}.rms"));
        let mut bytes = Vec::new();
        let mut session = |(of, over_ns): (&CoveredSession, Option<u64>)| {
            let value = session(of, over_ns, bytes.len());
            bytes.extend_from_slice(&of.blocks);
            value
        };
        let sessions = self.sessions.iter().map(|known| {
            let over_ns = known.covered.is_over.then_some(known.over_ns);
            session((&known.covered, over_ns))
        });
        let sessions: Vec<Value> = sessions.collect();
        let given_up = self.given_up.iter().map(|of| {
            let before = of.sessions.iter().map(|of| session((of, None)));
            let before: Vec<Value> = before.collect();
            json!({"sessions": before, "segments": of.segments, "files": of.files})
        });
        let given_up: Vec<Value> = given_up.collect();
        let tables = self.tables.iter().map(|(table, files)| {
            let files = files.iter().map(|file| file.action(0, true));
            (table.clone(), files.collect::<Vec<_>>())
        });
        let tables: BTreeMap<_, _> = tables.collect();
        let text = json!({
            "version": VERSION,
            "batch": self.batch,
            "done": self.done,
            "sessions": sessions,
            "forgotten": self.forgotten.to_value(),
            "given_up": given_up,
            "late": self.late,
            "tables": tables,
            "removed": self.removed,
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
        let Some(of_batch) = name.strip_suffix(".json").filter(|name| is_state(name)) else {
            bail!("a log names the plan {name:?}, expected one of {STATE}/");
        };
        let bytes = objects.get(name).with_context(|| name.to_owned())?;
        let read = || -> anyhow::Result<Self> {
            let value: Value = serde_json::from_slice(&bytes)?;
            if value["version"] != VERSION {
                bail!(
                    "found version {}, expected {VERSION}: use the version of ringmark-fleet that wrote it",
                    value["version"]
                );
            }
            let blocks = format!("{of_batch}.rms");
            let blocks = objects.get(&blocks).with_context(|| blocks.clone())?;
            of_value(&value, &blocks).context("expected the plan of a batch")
        };
        read().with_context(|| name.to_owned())
    }
}

/// Whether state has a name that we give: that of a batch, or `0-UUID`.
pub(crate) fn is_state(name: &str) -> bool {
    let name = name.strip_prefix(STATE).unwrap_or_default();
    let Some((number, writer)) = name.strip_prefix('/').unwrap_or_default().split_once('-') else {
        return false;
    };
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    is_number && matches!(number.len(), 1 | 20) && !writer.contains('/')
}

fn session(of: &CoveredSession, over_ns: Option<u64>, from: usize) -> Value {
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
        "over_ns": over_ns,
        "lost_since": of.lost_since,
        "from": from,
        "bytes": of.blocks.len(),
        "slots": slots.collect::<Vec<_>>(),
    })
}

fn of_value(value: &Value, blocks: &[u8]) -> Option<Plan> {
    let sessions = value["sessions"].as_array()?.iter();
    let sessions: Option<_> = sessions.map(|of| known(of, blocks)).collect();
    let given_up = value["given_up"].as_array()?.iter();
    let given_up = given_up.map(|of| {
        let before = of["sessions"].as_array()?.iter();
        let before = before.map(|of| Some(known(of, blocks)?.covered));
        Some(GivenUp {
            sessions: before.collect::<Option<_>>()?,
            segments: texts(&of["segments"])?,
            files: paths(&of["files"])?,
        })
    });
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
        forgotten: Forgotten::of_value(&value["forgotten"])?,
        given_up: given_up.collect::<Option<_>>()?,
        late: texts(&value["late"])?,
        tables,
        removed: paths(&value["removed"])?,
    })
}

fn paths(value: &Value) -> Option<Paths> {
    let tables = value.as_object()?.iter();
    let tables = tables.map(|(table, paths)| Some((table.clone(), texts(paths)?)));
    tables.collect()
}

fn texts(value: &Value) -> Option<BTreeSet<String>> {
    let texts = value.as_array()?.iter();
    texts.map(|text| text.as_str().map(str::to_owned)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_state_that_is_named_as_ours_is() {
        let writer = "ab09368f-5897-40e1-b114-dec2f84826c3";
        for ours in [format!("{:020}-{writer}.json", 7), format!("0-{writer}")] {
            assert!(is_state(&format!("{STATE}/{ours}")), "{ours}");
        }
        for other in [
            "00-notes/mine",
            ".hidden",
            ".snapshot/x",
            "log-spans.json",
            "0-a/b",
            "/0-a",
            "7",
        ] {
            assert!(!is_state(&format!("{STATE}/{other}")), "{other}");
        }
        assert!(!is_state("0-a") && !is_state(&format!("{STATE}0-a")));
    }
}
