//! A part of a trace: its rows, and what the next part needs of it.

use std::collections::HashMap;

use super::advance::advance;
use super::carried::{self, open_records};
use super::together::{Waiting, take_later};
use super::{CoveredSession, Settled};
use crate::blocks::damage::Damage;
use crate::events::event::{Event, Lost};
use crate::events::payload::Payload;
use crate::rows::each::{Chosen, LostSince, RowsEnd};
use crate::rows::row::Row;
use crate::trace_file::dump::Dump;
use crate::trace_file::session::Session;
use ringmark_format::Uuid;
use ringmark_format::schema::Shape;

/// Some of the pages of a trace: those that can be read and were in no part before.
///
/// ```
/// use ringmark_decoder::{DumpBuilder, Part, Settled};
///
/// let (mut covered, mut rows) = (Vec::new(), 0);
/// for part in [&b""[..], b""] {
///     let mut builder = DumpBuilder::new().bare();
///     builder.resume(&covered)?;
///     // Here come the inputs: builder.read_file(path, file).
///     let part = Part::new(builder.finish(), covered, Settled::default());
///     let row = |_: &ringmark_decoder::Row<'_, '_>| {
///         rows += 1;
///         Ok::<(), ()>(())
///     };
///     let (_, now) = part.each_row(row, |_| ()).expect("no row fails");
///     covered = now;
/// }
/// assert_eq!(rows, 0);
/// # Ok::<(), ringmark_decoder::Damage>(())
/// ```
#[derive(Debug)]
pub struct Part {
    dump: Dump,
    covered: Vec<CoveredSession>,
    /// By number of a session in the dump, its place among the covered ones.
    places: Vec<usize>,
    /// By number of a session, the records that wait.
    waiting: Vec<Vec<Waiting>>,
}

/// What a walk over the rows of a part says at its end.
///
/// It does not count what is open in sessions that go on: a later part will have it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartEnd {
    /// Rows that were given.
    pub rows: u64,
    /// Those of them that will not end: their session is over.
    pub unended: u64,
    /// Inputs whose pages could not be read again. If there are any, rows are missing, and the next part would lack
    /// what was open: read this part again.
    pub gone: Vec<Damage>,
}

/// Events that are not there.
///
/// Each loss comes with the part that has the page after it, and once. Losses that have no place in a slot,
/// and those after its last page, come when the session is over.
#[derive(Debug)]
pub struct LossRow<'d> {
    /// Whose.
    pub session: &'d Session,
    /// The page after them, or the last one; `None`: of the session as a whole.
    pub page: Option<&'d crate::Page>,
    /// When the next event was, in ns since 1970.
    pub ts_ns: u64,
    /// Why, as output names it.
    pub why: &'static str,
    /// How many.
    pub events: u64,
}

impl<'d> LossRow<'d> {
    fn of(lost: &Lost<'d>) -> Self {
        let clock = &lost.session.clock;
        Self {
            session: lost.session,
            page: lost.page,
            ts_ns: clock.wall_ns(lost.t_ns),
            why: lost.loss.why.cause(),
            events: lost.loss.count,
        }
    }
}

impl Part {
    /// A part of what was read. The builder of `dump` was resumed with `covered`.
    ///
    /// Pages that wait for others are left out, as if they had not been read: read them again with a later
    /// part. [`DumpBuilder::take_met`](crate::DumpBuilder::take_met) says which inputs had such pages.
    #[must_use]
    pub fn new(mut dump: Dump, mut covered: Vec<CoveredSession>, settled: Settled) -> Self {
        let mut known = HashMap::new();
        for (place, of) in covered.iter().enumerate() {
            known.insert((of.host.clone(), of.session), place);
        }
        let (mut places, mut waiting) = (Vec::new(), Vec::new());
        for session in &mut dump.sessions {
            let host = session.stored_host.clone().unwrap_or_default();
            let key = (host.clone(), session.uuid);
            let place = *known.entry(key).or_insert_with(|| {
                covered.push(CoveredSession::new(host, session.uuid));
                covered.len() - 1
            });
            let up_to = advance(session, &mut covered[place], settled);
            waiting.push(up_to.map_or_else(Vec::new, |tick| take_later(session, tick)));
            places.push(place);
        }
        Self {
            dump,
            covered,
            places,
            waiting,
        }
    }

    /// The dump, without the pages that are not read yet.
    #[must_use]
    pub const fn dump(&self) -> &Dump {
        &self.dump
    }

    /// The sessions that this part gives up, by their numbers in the dump, with their hosts: these said nothing for long.
    #[must_use]
    pub fn given_up(&self) -> HashMap<usize, (Vec<u8>, Uuid)> {
        let of = self.dump.sessions.iter().zip(&self.places);
        let is_over = |place: &usize| self.covered[*place].is_over;
        // One that was over before goes on: none of its pages is here.
        let of = of.filter(|(of, place)| is_over(place) && !of.goes_on && !of.is_final());
        let of = of.map(|(of, place)| (of.number, &self.covered[*place]));
        of.map(|(number, of)| (number, (of.host.clone(), of.session)))
            .collect()
    }

    /// How far the sessions are covered with this part.
    #[must_use]
    pub fn covered(&self) -> &[CoveredSession] {
        &self.covered
    }

    /// Gives each row that ends in this part to `to`, and each loss to `to_lost`. Spans and calls of a
    /// session that is over, and that have not ended, have a row without a duration. Then returns what the
    /// next part needs.
    ///
    /// Rows of a thread come in the order of their ends within a part, and those of several threads nearly so:
    /// where no span or thread has records in several slots, page by page. A loss is
    /// counted before the next row of its thread, in whichever part that is.
    ///
    /// # Errors
    /// The first of `to`.
    pub fn each_row<E>(
        self,
        mut to: impl FnMut(&Row<'_, '_>) -> Result<(), E>,
        mut to_lost: impl FnMut(&LossRow<'_>),
    ) -> Result<(PartEnd, Vec<CoveredSession>), E> {
        let Self {
            dump,
            mut covered,
            places,
            waiting,
        } = self;
        let mut lost = lost_since(&covered, &places);
        let lose = |lost: &Lost<'_>| {
            if lost.loss.count > 0 {
                to_lost(&LossRow::of(lost));
            }
        };
        let all = (Chosen::default(), dump.events_by_pages());
        let end = dump.rows_and_losses(all, &mut lost, &mut to, lose)?;
        let mut end = PartEnd {
            rows: end.rows,
            ..PartEnd::default()
        };
        keep_lost(lost, &mut covered, &places);
        let waiting = waiting.iter().zip(&dump.sessions).zip(&places);
        for ((waiting, session), place) in waiting {
            let of = &mut covered[*place];
            match of.is_over {
                true if session.goes_on => {}
                true => {
                    end.unended += unended(session, &mut to)?;
                    of.end(session.is_final());
                }
                false => carried::carry(session, waiting, of),
            }
        }
        end.rows += end.unended;
        end.gone = dump.gone();
        Ok((end, covered))
    }
}

impl Dump {
    /// Gives each row that ends in what was read and that is in no earlier part. The builder was resumed with `covered`.
    /// Unlike a [`Part`], nothing waits: what is not here counts as lost or missing, and a span or call that has not ended has
    /// no row.
    ///
    /// # Errors
    /// The first of `to`.
    pub fn rows_after<'d, E>(
        &'d self,
        covered: &[CoveredSession],
        chosen: Chosen,
        to: impl FnMut(&Row<'_, 'd>) -> Result<(), E>,
    ) -> Result<RowsEnd, E> {
        let mut lost = LostSince::new();
        for session in &self.sessions {
            let host = session.stored_host.as_deref().unwrap_or_default();
            let is_its = |of: &&CoveredSession| of.session == session.uuid && of.host == host;
            if let Some(of) = covered.iter().find(is_its) {
                lost_of(of, session.number, &mut lost);
            }
        }
        let all = (chosen, self.events_by_pages());
        self.rows_and_losses(all, &mut lost, to, |_| ())
    }
}

/// The losses for the next rows, by session of the dump and slot.
fn lost_since(covered: &[CoveredSession], places: &[usize]) -> LostSince {
    let mut lost = LostSince::new();
    for (number, place) in places.iter().enumerate() {
        lost_of(&covered[*place], number, &mut lost);
    }
    lost
}

fn lost_of(of: &CoveredSession, number: usize, lost: &mut LostSince) {
    let slots = of.slots.iter();
    let slots = slots.map(|(slot, of)| (Some(*slot), of.lost_since));
    let all = slots.chain([(None, of.lost_since)]).filter(|one| one.1 > 0);
    lost.extend(all.map(|(slot, count)| ((number, slot), count)));
}

fn keep_lost(lost: LostSince, covered: &mut [CoveredSession], places: &[usize]) {
    for place in places {
        let of = &mut covered[*place];
        of.lost_since = 0;
        of.slots.values_mut().for_each(|slot| slot.lost_since = 0);
    }
    for ((number, slot), count) in lost {
        let Some(of) = places.get(number).map(|place| &mut covered[*place]) else {
            continue;
        };
        match slot {
            Some(slot) => of.slots.entry(slot).or_default().lost_since = count,
            None => of.lost_since = count,
        }
    }
}

/// Gives the rows of what is open in a session that is over. Returns how many there are.
fn unended<E>(
    session: &Session,
    to: &mut impl FnMut(&Row<'_, '_>) -> Result<(), E>,
) -> Result<u64, E> {
    let (mut given, mut depth, mut in_slot) = (0, 0, usize::MAX);
    for open in open_records(session) {
        if in_slot != open.slot {
            (in_slot, depth) = (open.slot, 0);
        }
        let page = &session.slots[open.slot].pages[open.page];
        let bytes = page.load();
        for record in page.records(&bytes) {
            let ty = session.schema.find(record.type_id);
            let Some(ty) = ty.filter(|_| open.indices.binary_search(&record.index).is_ok()) else {
                continue;
            };
            let payload = Payload::copy(record.payload(&bytes));
            let number = record.index as u32;
            let place = (session, page, number);
            let event = Event::remade(place, (ty, record.tick, payload), 0);
            match ty.function.as_ref() {
                Some(meaning) if !meaning.exit => {
                    let Some(function) = session.schema.functions().of_use(meaning) else {
                        continue;
                    };
                    let around = if meaning.has_slot { 0 } else { depth };
                    depth += u32::from(!meaning.has_slot);
                    to(&Row::of_entry(&event, function, around))?;
                }
                None if ty.shape == Some(Shape::SpanNew) => to(&Row::of_made(&event))?,
                _ => continue,
            }
            given += 1;
        }
    }
    Ok(given)
}
