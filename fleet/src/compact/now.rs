//! The tables at one moment, for queries.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use ringmark_decoder::CoveredSession;
use ringmark_decoder::store::{ListedObject, ObjectSource};

use super::added_file::AddedFile;
use super::forgotten::Forgotten;
use super::inputs::{self, Footer};
use super::log::Log;
use super::new_uuid;
use super::objects;
use super::plan::Plan;
use super::tables::TABLES;
use super::tables::{Paths, has};

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
    /// Reads the logs at an address or below a path; `None`: there are none. `raw`: the store, whose new segments may be of
    /// sessions that were given up.
    pub(crate) fn read(place: &str, raw: &dyn ObjectSource) -> anyhow::Result<Option<Self>> {
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
            let mut plan = Plan::get(objects, &decided.plan)?;
            // All that a table may lack is the last batch.
            let is_near = |batch: u64| batch == plan.batch || batch + 1 == plan.batch;
            if !batches.iter().all(|(_, batch)| is_near(*batch)) {
                continue;
            }
            for (table, _) in batches.iter().filter(|(_, batch)| *batch < plan.batch) {
                let added = plan.tables.get(*table).into_iter().flatten().cloned();
                let of = files.entry(table).or_default();
                of.retain(|file| !has(&plan.removed, (table, &file.path)));
                of.extend(added);
            }
            if !plan.given_up.is_empty() {
                let undone = take_back(&mut plan, raw)?;
                for (table, of) in &mut files {
                    of.retain(|file| !has(&undone, (table, &file.path)));
                }
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

/// Undoes for a query what the next batch undoes. Returns the files that count no more.
fn take_back(plan: &mut Plan, raw: &dyn ObjectSource) -> anyhow::Result<Paths> {
    let segments = inputs::segments(raw)?;
    let new = segments
        .iter()
        .filter(|(name, _)| !plan.done.contains(*name));
    let new = new.map(|(name, bytes)| ListedObject {
        name: name.clone(),
        bytes: *bytes,
    });
    let heard = Footer::read_all(raw, &new.collect::<Vec<_>>())?;
    Ok(plan.take_back(&heard, &segments).files)
}
