//! Batches: each reads segments, writes files and a plan, and is then decided by one commit.
//!
//! The log of losses decides: the writer that creates its next version has the batch. The other tables get their
//! files afterwards, from the plan that this commit names, by the first run that finds them without. So a batch that was
//! decided is finished by the next run if its own was killed, and two runs at the same time do no harm.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use ringmark_decoder::store::{ListedObject, ObjectSource};
use ringmark_decoder::{CoveredSession, Part, PartEnd, Session, Settled};
use ringmark_format::Uuid;

use super::added_file::AddedFile;
use super::files::{Files, Written, schema};
use super::forgotten::Forgotten;
use super::given_up::GivenUp;
use super::inputs::{self, Footer, Met};
use super::log::{self, Log};
use super::losses::Losses;
use super::objects::Objects;
use super::plan::{Known, Plan};
use super::snapshot::Snapshot;
use super::store_clock::StoreClock;
use super::tables::{Lasting, TABLES};
use super::time::now_ns;

/// Segments that are read at a time, at most: each is an open file.
const SEGMENTS: usize = 300;
/// For how long a session that is over is remembered: pages that come twice are known by it.
const REMEMBERED_NS: u64 = 7 * 24 * super::time::HOUR_NS;

/// A session of a host.
type SessionOf = (Vec<u8>, Uuid);

/// What a run did.
#[derive(Debug, Default)]
pub(crate) struct Done {
    pub(crate) batches: u64,
    pub(crate) segments: u64,
    pub(crate) rows: u64,
    pub(crate) unended: u64,
    /// Sessions that go on, after their host was given up.
    pub(crate) taken_back: u64,
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
            let segments = inputs::segments(self.raw)?;
            let clock = StoreClock::of(&segments);
            let plan = self.finish(&decided, clock)?;
            let is_still = inputs::segments(self.raw)? == segments;
            let new = segments.keys().filter(|name| !plan.done.contains(*name));
            let new: Vec<String> = new.cloned().collect();
            let mut first: Vec<_> = new.iter().filter(|name| !waiting.contains(*name)).collect();
            if first.is_empty() {
                done.waiting = waiting.intersection(&new.iter().cloned().collect()).count() as u64;
                done.plan = plan;
                done.doubt = clock.doubt();
                return Ok(done);
            }
            first.truncate(SEGMENTS);
            let again = new.iter().filter(|name| waiting.contains(*name));
            let mut names: Vec<_> = first.into_iter().chain(again).cloned().collect();
            names.truncate(SEGMENTS * 3);
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
    fn finish(&self, decided: &Snapshot, clock: StoreClock) -> anyhow::Result<Plan> {
        let plan = self.plan(decided)?;
        let others = TABLES[1..].iter().filter(|_| plan.batch > 0);
        for table in others {
            loop {
                let now = self.log(table).snapshot()?;
                let is_done = now.batch >= plan.batch;
                if is_done || self.commit((table, &now), (&plan, &decided.plan), clock)? {
                    break;
                }
            }
        }
        Ok(plan)
    }

    fn plan(&self, decided: &Snapshot) -> anyhow::Result<Plan> {
        Plan::of_batch(self.tables, (decided.batch, &decided.plan))
    }

    /// Commits what a batch has for a table; `false`: another writer was faster.
    fn commit(
        &self,
        (table, now): (&str, &Snapshot),
        (plan, name): (&Plan, &str),
        clock: StoreClock,
    ) -> anyhow::Result<bool> {
        let now_ms = clock.stamp_ns() / 1_000_000;
        let writer = name.rsplit_once('/').map_or(name, |(_, last)| last);
        let mut actions = log::about(plan.batch, (writer, name), now_ms);
        if now.next == 0 {
            let id = (self.new_id)()?;
            actions.extend(log::first(&id, &schema(table), now_ms));
        }
        // The rows of a host may have been removed since.
        let removed = plan.removed.get(table).into_iter().flatten();
        let removed = removed.filter_map(|path| now.files.get(path));
        actions.extend(removed.map(|file| file.removal(now_ms, true)));
        let files = plan.tables.get(table).into_iter().flatten();
        actions.extend(files.map(|file| file.action(now_ms, true)));
        self.log(table).commit(now.next, &actions)
    }

    /// Reads segments and commits their rows. Segments whose pages wait are not done.
    fn batch(
        &self,
        (decided, mut before): (&Snapshot, Plan),
        names: &[String],
        (mut settled, clock): (Settled, StoreClock),
        segments: &BTreeMap<String, u64>,
        done: &mut Done,
    ) -> anyhow::Result<()> {
        let begun_ns = now_ns();
        let listed = listed(names, segments);
        let footers = Footer::read_all(self.raw, &listed)?;
        let undone = before.take_back(&footers, segments);
        // What was read of these sessions is read again by the next batch.
        settled.is_all &= undone.sessions == 0;
        let over = over_since(&before);
        let sessions = before.sessions.into_iter();
        let mut covered: Vec<_> = sessions.map(|known| known.covered).collect();
        let mut forgotten = before.forgotten;
        let read = inputs::read(self.raw, (&listed, &footers), &mut covered, &forgotten)?;
        let (met, mut late) = (read.met, read.late);
        late.0.extend(read.damaged);
        done.damage.extend(read.unread);
        let damage = &read.dump.damage;
        done.damage.extend(damage.iter().map(ToString::to_string));
        let part = Part::new(read.dump, covered, settled);
        let silent: Vec<SessionOf> = part.given_up().into_values().collect();
        let writer = (self.new_id)()?;
        let (end, covered, written) = self.rows(part, &writer)?;
        let sessions = known(covered, &over, &forgotten, clock.stamp_ns());
        let new = covered_segments(&met, &sessions);
        let sessions = remembered(sessions, &mut forgotten, clock);
        let (count, rows) = (new.len() as u64, end.rows);
        let names = |before, new| there(before, new, segments);
        let mut plan = Plan {
            batch: before.batch + 1,
            done: names(before.done, new),
            sessions,
            forgotten,
            given_up: before.given_up,
            late: names(before.late, late.0),
            tables: written.files,
            removed: undone.files,
        };
        if !silent.is_empty() {
            plan.given_up.push(GivenUp {
                sessions: self.before(decided, (&footers, segments), &silent)?,
                segments: with_any(&footers, &silent),
                files: written.until_heard,
            });
        }
        plan.forget_given_up();
        if count == 0 && rows == 0 && undone.sessions == 0 {
            return Ok(());
        }
        let name = plan.put(self.tables, &writer)?;
        log::check_in_time(begun_ns)?;
        if self.commit((TABLES[0], decided), (&plan, &name), clock)? {
            done.batches += 1;
            done.segments += count;
            done.rows += rows;
            done.unended += end.unended;
            done.late += late.1;
            done.taken_back += undone.sessions;
        } else {
            self.drop_files(&plan.tables, &name);
        }
        Ok(())
    }

    /// Writes the rows of a part. Returns its end, what is covered then, and the files.
    fn rows(
        &self,
        part: Part,
        writer: &str,
    ) -> anyhow::Result<(PartEnd, Vec<CoveredSession>, Written)> {
        let given_up = part.given_up();
        let lasting = |session: &Session| match given_up.contains_key(&session.number) {
            true => Lasting::UntilHeard,
            false => Lasting::Always,
        };
        let (mut files, mut losses) = (
            Files::new(self.tables, writer.to_owned()),
            Losses::default(),
        );
        let (end, covered) = part.each_row(
            |row| files.push(row, lasting(row.record.session)),
            |loss| losses.push(loss, lasting(loss.session)),
        )?;
        check_whole(&end)?;
        Ok((end, covered, files.finish(losses)?))
    }

    /// How far sessions were read before a batch.
    fn before(
        &self,
        decided: &Snapshot,
        (footers, segments): (&BTreeMap<String, Footer>, &BTreeMap<String, u64>),
        silent: &[SessionOf],
    ) -> anyhow::Result<Vec<CoveredSession>> {
        // Nothing kept it while it was gone on with.
        let mut plan = self.plan(decided)?;
        let _ = plan.take_back(footers, segments);
        let mut known: BTreeMap<_, _> = plan
            .sessions
            .into_iter()
            .map(|known| (key(&known.covered), known.covered))
            .collect();
        let before = silent.iter().map(|of| {
            known
                .remove(of)
                .unwrap_or_else(|| CoveredSession::new(of.0.clone(), of.1))
        });
        Ok(before.collect())
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

/// The names of these that segments still have.
fn there(
    before: BTreeSet<String>,
    new: BTreeSet<String>,
    segments: &BTreeMap<String, u64>,
) -> BTreeSet<String> {
    let all = before.into_iter().chain(new);
    all.filter(|name| segments.contains_key(name)).collect()
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

/// The segments that may have something of any of these sessions.
fn with_any(footers: &BTreeMap<String, Footer>, sessions: &[SessionOf]) -> BTreeSet<String> {
    let may_have = |footer: &Footer| sessions.iter().any(|of| footer.may_have((&of.0, of.1)));
    let of = footers.iter().filter(|(_, footer)| may_have(footer));
    of.map(|(name, _)| name.clone()).collect()
}

/// When sessions were known to be over.
fn over_since(plan: &Plan) -> BTreeMap<SessionOf, u64> {
    let sessions = plan.sessions.iter();
    let over = sessions.filter(|known| known.over_ns > 0);
    over.map(|known| (key(&known.covered), known.over_ns))
        .collect()
}

fn key(of: &CoveredSession) -> SessionOf {
    (of.host.clone(), of.session)
}

/// The sessions after a batch, with when they were over: those that are forgotten, at no time that is known.
fn known(
    covered: Vec<CoveredSession>,
    over: &BTreeMap<SessionOf, u64>,
    forgotten: &Forgotten,
    now: u64,
) -> Vec<Known> {
    let sessions = covered.into_iter().map(|covered| {
        let over_ns = match forgotten.has((&covered.host, covered.session)) {
            true => 0,
            // It was dated by a clock that ran ahead, if it is later.
            false => over.get(&key(&covered)).map_or(now, |over| now.min(*over)),
        };
        Known { covered, over_ns }
    });
    sessions.collect()
}

/// The sessions whose pages are still known. The others are forgotten.
fn remembered(sessions: Vec<Known>, forgotten: &mut Forgotten, clock: StoreClock) -> Vec<Known> {
    let now = clock.now_ns();
    forgotten.expire(now);
    let is_kept = |known: &Known| !known.covered.is_over || known.over_ns + REMEMBERED_NS > now;
    let (kept, others): (Vec<_>, Vec<_>) = sessions.into_iter().partition(is_kept);
    for Known { covered, .. } in others {
        forgotten.add((&covered.host, covered.session), clock.stamp_ns());
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
