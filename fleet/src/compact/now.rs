//! The tables at one moment, for queries.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use ringmark_decoder::CoveredSession;

use super::added_file::AddedFile;
use super::files::TABLES;
use super::forgotten::Forgotten;
use super::log::Log;
use super::new_uuid;
use super::objects;
use super::plan::Plan;

/// How often it is read again, if a run of `compact` commits in between.
const AGAIN: usize = 100;

/// What the tables have after a batch that was decided.
pub(crate) struct TablesNow {
    /// By table, its files.
    pub(crate) files: BTreeMap<&'static str, Vec<AddedFile>>,
    /// Segments whose rows are in them.
    pub(crate) done: BTreeSet<String>,
    /// Sessions whose pages get no rows any more.
    pub(crate) forgotten: Forgotten,
    /// How far sessions are in them.
    pub(crate) covered: Vec<CoveredSession>,
}

impl TablesNow {
    /// Reads the logs at an address or below a path; `None`: there are none.
    pub(crate) fn read(place: &str) -> anyhow::Result<Option<Self>> {
        let objects = &*objects::place(place, new_uuid()?)?;
        let snapshot = |table: &str| Log::new(objects, &format!("tables/{table}")).snapshot();
        for _ in 0..AGAIN {
            let mut files = BTreeMap::new();
            let (mut batches, decided_by) = (Vec::new(), TABLES[0]);
            for table in &TABLES[1..] {
                let now = snapshot(table)?;
                batches.push((*table, now.batch));
                files.insert(*table, now.files.into_values().collect::<Vec<_>>());
            }
            let decided = snapshot(decided_by)?;
            if decided.batch == 0 {
                return Ok(None);
            }
            let plan = Plan::get(objects, &decided.plan)?;
            // All that a table may lack is the last batch.
            let is_near = |batch: u64| batch == plan.batch || batch + 1 == plan.batch;
            if !batches.iter().all(|(_, batch)| is_near(*batch)) {
                continue;
            }
            for (table, _) in batches.iter().filter(|(_, batch)| *batch < plan.batch) {
                let added = plan.tables.get(*table).into_iter().flatten().cloned();
                files.entry(table).or_default().extend(added);
            }
            let sessions = plan.sessions.into_iter();
            return Ok(Some(Self {
                files,
                done: plan.done,
                forgotten: plan.forgotten,
                covered: sessions.map(|known| known.covered).collect(),
            }));
        }
        bail!("runs of 'ringmark compact' commit faster than the logs are read")
    }
}
