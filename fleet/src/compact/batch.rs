//! Batches: each reads segments, writes files and a plan, and is then decided by one commit.
//!
//! The log of losses decides: the writer that creates its next version has the batch. The other tables get their
//! files afterwards, from the plan that this commit names, by the first run that finds them without. So a batch that was
//! decided is finished by the next run if its own was killed, and two runs at the same time do no harm.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use ringmark_decoder::store::{ListedObject, ObjectSource};
use ringmark_decoder::{CoveredSession, Part, PartEnd, Settled};
use ringmark_format::Uuid;

use super::added_file::AddedFile;
use super::files::{Files, TABLES, schema};
use super::forgotten::Forgotten;
use super::inputs::{self, Met};
use super::log::{self, Log};
use super::losses::Losses;
use super::objects::Objects;
use super::plan::{Known, Plan};
use super::snapshot::Snapshot;
use super::store_clock::StoreClock;
use super::time::now_ns;

/// Segments that are read at a time, at most: each is an open file.
const SEGMENTS: usize = 300;
/// For how long a session that is over is remembered: pages that come twice are known by it.
const REMEMBERED_NS: u64 = 7 * 24 * super::time::HOUR_NS;

/// What a run did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) batches: u64,
    pub(crate) segments: u64,
    pub(crate) rows: u64,
    pub(crate) unended: u64,
    /// Pages that came after their session was forgotten.
    pub(crate) late: u64,
    /// Segments with pages that wait for others.
    pub(crate) waiting: u64,
    pub(crate) damage: Vec<String>,
    /// Why no host is given up, if none may be.
    pub(crate) doubt: Option<String>,
    /// What is known after the last batch.
    pub(crate) plan: Plan,
}

/// Where a run reads and writes.
pub(crate) struct Compactor<'o> {
    pub(crate) raw: &'o dyn ObjectSource,
    pub(crate) tables: &'o dyn Objects,
    /// Makes a uuid that no other writer has.
    pub(crate) new_id: fn() -> anyhow::Result<String>,
    /// A host that said nothing for so long is given up.
    pub(crate) silent_ns: u64,
}

impl Compactor<'_> {
    /// Makes batches until no segment is left that can be read.
    pub(crate) fn run(&self) -> anyhow::Result<Done> {
        let mut done = Done::default();
        let mut waiting = BTreeSet::new();
        loop {
            let decided = self.log(TABLES[0]).snapshot()?;
            let plan = self.finish(&decided)?;
            let segments = inputs::segments(self.raw)?;
            let is_still = inputs::segments(self.raw)? == segments;
            let new = segments.keys().filter(|name| !plan.done.contains(*name));
            let new: Vec<String> = new.cloned().collect();
            let mut first: Vec<_> = new.iter().filter(|name| !waiting.contains(*name)).collect();
            if first.is_empty() {
                done.waiting = waiting.intersection(&new.iter().cloned().collect()).count() as u64;
                done.plan = plan;
                done.doubt = StoreClock::of(&segments).doubt();
                return Ok(done);
            }
            first.truncate(SEGMENTS);
            let again = new.iter().filter(|name| waiting.contains(*name));
            let mut names: Vec<_> = first.into_iter().chain(again).cloned().collect();
            names.truncate(SEGMENTS * 3);
            let clock = StoreClock::of(&segments);
            let settled = Settled {
                is_all: is_still && names.len() == new.len(),
                silent_ns: clock.silent_since(self.silent_ns),
            };
            self.batch(
                (&decided, plan),
                &names,
                (settled, clock),
                &segments,
                &mut done,
            )?;
            waiting.extend(names);
        }
    }

    fn log(&self, table: &str) -> Log<'_> {
        Log::new(self.tables, &format!("tables/{table}"))
    }

    /// Gives the other tables what the last decided batch has for them. Returns its plan.
    fn finish(&self, decided: &Snapshot) -> anyhow::Result<Plan> {
        if decided.batch == 0 {
            return Ok(Plan::default());
        }
        let plan = Plan::get(self.tables, &decided.plan)?;
        for table in &TABLES[1..] {
            loop {
                let now = self.log(table).snapshot()?;
                let is_done = now.batch >= plan.batch;
                if is_done || self.commit(table, &now, &plan, &decided.plan)? {
                    break;
                }
            }
        }
        Ok(plan)
    }

    /// Commits what a batch has for a table; `false`: another writer was faster.
    fn commit(&self, table: &str, now: &Snapshot, plan: &Plan, name: &str) -> anyhow::Result<bool> {
        let now_ms = now_ns() / 1_000_000;
        let writer = name.rsplit_once('/').map_or(name, |(_, last)| last);
        let mut actions = log::about(plan.batch, (writer, name), now_ms);
        if now.next == 0 {
            let id = (self.new_id)()?;
            actions.extend(log::first(&id, &schema(table), now_ms));
        }
        let files = plan.tables.get(table).into_iter().flatten();
        actions.extend(files.map(|file| file.action(now_ms, true)));
        self.log(table).commit(now.next, &actions)
    }

    /// Reads segments and commits their rows. Segments whose pages wait are not done.
    fn batch(
        &self,
        (decided, before): (&Snapshot, Plan),
        names: &[String],
        (settled, clock): (Settled, StoreClock),
        segments: &BTreeMap<String, u64>,
        done: &mut Done,
    ) -> anyhow::Result<()> {
        let begun_ns = now_ns();
        let listed = listed(names, segments);
        let over = over_since(&before);
        let sessions = before.sessions.into_iter();
        let mut covered: Vec<_> = sessions.map(|known| known.covered).collect();
        let mut forgotten = before.forgotten;
        let read = inputs::read(self.raw, &listed, &mut covered, &forgotten)?;
        let (met, mut late) = (read.met, read.late);
        late.0.extend(read.damaged);
        done.damage.extend(read.unread);
        let damage = &read.dump.damage;
        done.damage.extend(damage.iter().map(ToString::to_string));
        let part = Part::new(read.dump, covered, settled);
        let writer = (self.new_id)()?;
        let mut files = Files::new(self.tables, writer.clone());
        let mut losses = Losses::default();
        let rows = part.each_row(|row| files.push(row), |loss| losses.push(loss));
        let (end, covered) = rows?;
        check_whole(&end)?;
        let now = clock.now_ns();
        let sessions = known(covered, &over, &forgotten, now);
        let new = covered_segments(&met, &sessions);
        let sessions = remembered(sessions, &mut forgotten, now);
        let (count, rows) = (new.len() as u64, end.rows);
        let names = |before: BTreeSet<String>, new: BTreeSet<String>| {
            let all = before.into_iter().chain(new);
            all.filter(|name| segments.contains_key(name)).collect()
        };
        let plan = Plan {
            batch: before.batch + 1,
            done: names(before.done, new),
            sessions,
            forgotten,
            late: names(before.late, late.0),
            tables: files.finish(losses)?,
        };
        if count == 0 && rows == 0 {
            return Ok(());
        }
        let name = plan.put(self.tables, &writer)?;
        log::check_in_time(begun_ns)?;
        if self.commit(TABLES[0], decided, &plan, &name)? {
            done.batches += 1;
            done.segments += count;
            done.rows += rows;
            done.unended += end.unended;
            done.late += late.1;
        } else {
            self.drop_files(&plan.tables, &name);
        }
        Ok(())
    }

    /// Deletes what a batch wrote that another one was faster than. What stays is deleted later.
    fn drop_files(&self, tables: &BTreeMap<String, Vec<AddedFile>>, plan: &str) {
        let files = tables.iter().flat_map(|(table, files)| {
            let name = move |file: &AddedFile| format!("tables/{table}/{}", file.path);
            files.iter().map(name)
        });
        let blocks = plan.replace(".json", ".rms");
        for name in files.chain([plan.to_owned(), blocks]) {
            let _ = self.tables.delete(&name);
        }
    }
}

/// Fails where rows are missing, because segments could not be read again.
fn check_whole(end: &PartEnd) -> anyhow::Result<()> {
    if let Some(gone) = end.gone.first() {
        bail!("{gone}; nothing of this batch is in the tables: run compact again");
    }
    Ok(())
}

fn listed(names: &[String], segments: &BTreeMap<String, u64>) -> Vec<ListedObject> {
    let listed = names.iter().map(|name| ListedObject {
        name: name.clone(),
        bytes: segments.get(name).copied().unwrap_or(0),
    });
    listed.collect()
}

/// When sessions were known to be over.
fn over_since(plan: &Plan) -> BTreeMap<(Vec<u8>, Uuid), u64> {
    let sessions = plan.sessions.iter();
    let over = sessions.filter(|known| known.over_ns > 0);
    over.map(|known| (key(&known.covered), known.over_ns))
        .collect()
}

fn key(of: &CoveredSession) -> (Vec<u8>, Uuid) {
    (of.host.clone(), of.session)
}

/// The sessions after a batch, with when they were over: those that are forgotten, at no time that is known.
fn known(
    covered: Vec<CoveredSession>,
    over: &BTreeMap<(Vec<u8>, Uuid), u64>,
    forgotten: &Forgotten,
    now: u64,
) -> Vec<Known> {
    let sessions = covered.into_iter().map(|covered| {
        let over_ns = match forgotten.has((&covered.host, covered.session)) {
            true => 0,
            false => over.get(&key(&covered)).copied().unwrap_or(now),
        };
        Known { covered, over_ns }
    });
    sessions.collect()
}

/// The sessions whose pages are still known. The others are forgotten.
fn remembered(sessions: Vec<Known>, forgotten: &mut Forgotten, now: u64) -> Vec<Known> {
    forgotten.expire(now);
    let is_kept = |known: &Known| !known.covered.is_over || known.over_ns + REMEMBERED_NS > now;
    let (kept, others): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_kept);
    for Known { covered, .. } in others {
        forgotten.add((&covered.host, covered.session), now);
    }
    kept
}

/// Segments whose pages are all covered.
fn covered_segments(met: &Met, sessions: &[Known]) -> BTreeSet<String> {
    let known: BTreeMap<_, _> = sessions
        .iter()
        .map(|known| (key(&known.covered), known))
        .collect();
    let is_covered = |((host, session, slot), page): (&(Vec<u8>, Uuid, u32), &u64)| {
        let of = known.get(&(host.clone(), *session));
        let of_any = sessions
            .iter()
            .find(|known| known.covered.session == *session);
        let of = of.or(of_any.as_ref().filter(|_| host.is_empty()));
        of.is_some_and(|known| {
            let slot = known.covered.slots.get(slot);
            known.covered.is_over || slot.is_some_and(|slot| *page < slot.next_page)
        })
    };
    let whole = met.iter().filter(|(_, pages)| pages.iter().all(is_covered));
    whole.map(|(name, _)| name.clone()).collect()
}
