//! What is deleted: raw segments that are covered and old, schema that nothing names any more, former state,
//! and files that were replaced a day ago. Only objects of known names are touched.

use std::collections::HashSet;
use std::io::ErrorKind;

use anyhow::Context;
use ringmark_decoder::store::{
    ListedObject, ObjectSource, SegmentFooter, directory_name, schema_session,
};
use ringmark_format::Uuid;

use super::inputs;
use super::log::Log;
use super::objects::Objects;
use super::orphans;
use super::plan::{Plan, is_state};
use super::store_clock::StoreClock;
use super::tables::STATE;
use super::tables::TABLES;
use super::time::{HOUR_NS, hour_of, now_ns};

/// For how long a file that was replaced stays, for queries that run.
const REPLACED_NS: u64 = 24 * HOUR_NS;

/// A store that collectors write to, for reading and for deleting.
pub(crate) struct Raw<'o> {
    pub(crate) source: &'o dyn ObjectSource,
    pub(crate) objects: &'o dyn Objects,
}

/// A session by its uuid and the directory of its host.
type SessionOf = (Uuid, String);

impl Raw<'_> {
    /// Deletes segments that were uploaded longer ago than `keep_ns` and that no later batch reads; then schema.
    /// Returns how many of both.
    pub(crate) fn delete(&self, plan: &Plan, keep_ns: u64) -> anyhow::Result<(u64, u64)> {
        let segments = inputs::segments(self.source)?;
        let now = StoreClock::of(&segments).now_ns();
        let (mut deleted, mut kept) = (0, Vec::new());
        for (name, bytes) in segments {
            // It was uploaded in this hour, at its end at the latest.
            let hour = name.split('/').nth(2).and_then(hour_of);
            let ended = hour.and_then(|hour| (hour + 1).checked_mul(HOUR_NS));
            let is_old = ended.is_some_and(|ended| ended.saturating_add(keep_ns) <= now);
            let is_needed = plan.late.contains(&name) || plan.may_read_again(&name);
            if is_old && plan.done.contains(&name) && !is_needed && self.is_put(&name, keep_ns)? {
                deleted += u64::from(self.objects.delete(&name).context(name)?);
            } else {
                kept.push(ListedObject { name, bytes });
            }
        }
        let schema = if deleted > 0 {
            self.delete_schema(plan, &kept)?
        } else {
            0
        };
        Ok((deleted, schema))
    }

    /// Whether it was put longer than `keep_ns` ago by the clock of the store, too: the hour in its name is that of its collector's.
    fn is_put(&self, name: &str, keep_ns: u64) -> anyhow::Result<bool> {
        let put_ns = match self.objects.put_ns(name) {
            // Another run has deleted it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            put => put.with_context(|| name.to_owned())?,
        };
        Ok(put_ns.saturating_add(keep_ns) <= now_ns())
    }

    /// Deletes the schema of sessions that are over and that no segment has.
    fn delete_schema(&self, plan: &Plan, segments: &[ListedObject]) -> anyhow::Result<u64> {
        // A segment without a footer does not say what it needs.
        let Some(needed) = self.needed(segments)? else {
            return Ok(0);
        };
        let sessions = plan.sessions.iter().map(|known| &known.covered);
        let over = sessions.filter(|of| of.is_over && !plan.may_go_on((&of.host, of.session)));
        let over = over.map(|of| (of.session, directory(&of.host)));
        let over: HashSet<_> = over.filter(|of| !needed.contains(of)).collect();
        let mut deleted = 0;
        for ListedObject { name, .. } in self.source.list("schema").context("schema")? {
            let host = name.split('/').nth(1).unwrap_or_default().to_owned();
            let session = schema_session(&name).map(|session| (session, host));
            if session.is_some_and(|of| over.contains(&of)) {
                deleted += u64::from(self.objects.delete(&name).context(name)?);
            }
        }
        Ok(deleted)
    }

    /// The sessions that segments have; `None`: one does not say.
    fn needed(&self, segments: &[ListedObject]) -> anyhow::Result<Option<HashSet<SessionOf>>> {
        let mut needed = HashSet::new();
        for segment in segments {
            let footer = SegmentFooter::of_object(self.source, segment);
            let Some(footer) = footer.with_context(|| segment.name.clone())? else {
                return Ok(None);
            };
            let sessions = footer.sessions.iter();
            needed.extend(sessions.map(|of| (of.session, directory(&of.host))));
        }
        Ok(Some(needed))
    }
}

fn directory(host: &[u8]) -> String {
    directory_name(&String::from_utf8_lossy(host))
}

/// Deletes files that were replaced a day before `now_ns`, and state that later batches have replaced. Returns how many
/// files.
pub(crate) fn tables(objects: &dyn Objects, now_ns: u64) -> anyhow::Result<u64> {
    let oldest_ms = now_ns.saturating_sub(REPLACED_NS) / 1_000_000;
    let (mut deleted, mut batch) = (0, u64::MAX);
    for table in TABLES {
        let table = format!("tables/{table}");
        let now = Log::new(objects, &table).snapshot()?;
        batch = batch.min(now.batch);
        // Most of what was ever replaced is gone.
        for name in objects.list(&table).with_context(|| table.clone())? {
            let path = name.strip_prefix(&format!("{table}/"));
            let removed = path.and_then(|path| now.removed.get(path));
            let is_gone = removed.is_some_and(|ms| *ms < oldest_ms);
            if is_gone && path.is_some_and(orphans::is_ours) {
                deleted += u64::from(objects.delete(&name).context(name)?);
            }
        }
    }
    // A run that began before may still read the plan of the batch before.
    let needed = format!("{STATE}/{:020}", batch.saturating_sub(1));
    for name in objects.list(STATE).context(STATE)? {
        if name < needed && is_state(&name) {
            objects.delete(&name).context(name)?;
        }
    }
    Ok(deleted)
}
