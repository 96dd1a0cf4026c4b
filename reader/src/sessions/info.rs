//! The figures of a session at one moment, as plain values.

use std::path::PathBuf;

use ringmark_format::Uuid;
use ringmark_format::counters::CAUSES;
use ringmark_format::ending::Ending;
use ringmark_format::session::{Clock, Mode};
use ringmark_format::slot::state;
use ringmark_ring::Owner;

use crate::sessions::session::Session;
use crate::sessions::thread_names;

/// Figures of a session at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionInfo {
    /// Where the ring file was found.
    pub path: PathBuf,
    /// Identity of the session.
    pub uuid: Uuid,
    /// Process id in the process's own pid namespace.
    pub pid: u32,
    /// Whether that is our pid namespace, too, so that the number means something here.
    pub pid_is_ours: bool,
    /// Whether the process lives and still holds the session.
    pub alive: bool,
    /// Whether the session was closed, or its process has begun a regular exit.
    pub closed: bool,
    /// How the session ended; `None`: it has not.
    pub ending: Option<Ending>,
    /// Service name, or the name of the process without one.
    pub name: String,
    /// Mode of the session.
    pub mode: Mode,
    /// Clock of the session.
    pub clock: Clock,
    /// Whether another clock was requested and could not be used.
    pub clock_fell_back: bool,
    /// `CLOCK_REALTIME` of the start, in ns since 1970.
    pub started_real_ns: u64,
    /// Size of the ring file in bytes; not all of it need be allocated.
    pub file_bytes: u64,
    /// Bytes of it that were handed out to rings and schema so far.
    pub allocated_bytes: u64,
    /// Attributes of the session, in the order of the file.
    pub attributes: Vec<SessionAttribute>,
    /// Events lost that belong to no ring, by cause.
    pub lost: [u64; CAUSES],
    /// Whether the session had no room to describe all its event types.
    pub schema_incomplete: bool,
    /// Rings that have or had an owner.
    pub rings: Vec<RingInfo>,
}

/// An attribute of a session, for example a tag or the name of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionAttribute {
    /// What it is: see [`ringmark_format::attribute::tag`].
    pub tag: u16,
    /// Its bytes, as the program wrote them.
    pub value: Vec<u8>,
}

/// Figures of one ring at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RingInfo {
    /// Index in the ring directory.
    pub slot: u32,
    /// Ring id of the present or last claim; 0 in the middle of a claim.
    pub ring_id: u64,
    /// State of the slot: see [`state`].
    pub state: u64,
    /// Thread id of the owner in its pid namespace; 0 in the middle of a claim.
    pub tid: u32,
    /// Longest time that an owner waited for the ring, at its first event, in ns.
    pub wait_ns: u64,
    /// What the owner thread is called now; once it has ended, as of its first event.
    pub thread_name: String,
    /// Size of a page in bytes; 0 if the geometry is impossible.
    pub page_bytes: u32,
    /// Number of pages in the ring.
    pub pages: u32,
    /// Pages produced since the first claim.
    pub produced: u64,
    /// Pages released by the consumer since the first claim.
    pub consumed: u64,
    /// Pages that hold data: not released yet (discard), or any (overwrite).
    pub pages_filled: u32,
    /// Number of claims so far: threads that used the slot one after the other.
    pub claims: u32,
    /// Events lost in this slot, by cause.
    pub lost: [u64; CAUSES],
}

impl SessionInfo {
    /// The figures of a session now.
    #[must_use]
    pub fn of(session: &Session) -> Self {
        use ringmark_format::attribute::Attributes;
        use ringmark_ring::identity::{self, Liveness};
        let ring = session.ring();
        let geometry = ring.geometry();
        let header = &geometry.header;
        let attributes = Attributes::new(&geometry.attributes);
        Self {
            path: session.path().to_owned(),
            uuid: session.uuid(),
            pid: header.pid,
            pid_is_ours: header.pid_namespace == identity::own_pid_namespace(),
            alive: session.liveness() == Liveness::Alive,
            closed: ring.has_said_bye(),
            ending: session.ending(),
            name: session.name(),
            mode: geometry.mode,
            clock: geometry.clock,
            clock_fell_back: header.flags & ringmark_format::session::FLAG_CLOCK_FELL_BACK != 0,
            started_real_ns: header.real_zero_ns,
            file_bytes: ring.map().bytes(),
            allocated_bytes: allocated(session),
            attributes: attributes
                .map(|attribute| SessionAttribute {
                    tag: attribute.tag,
                    value: attribute.value.to_vec(),
                })
                .collect(),
            lost: ring.lost(),
            schema_incomplete: ring.schema_incomplete(),
            rings: rings(session),
        }
    }

    /// How full the rings together are, in percent; see [`RingInfo::fill_percent`].
    #[must_use]
    pub fn fill_percent(&self) -> u64 {
        let sum = |of: fn(&RingInfo) -> u32| -> u64 {
            self.rings.iter().map(|ring| u64::from(of(ring))).sum()
        };
        percent(sum(|ring| ring.pages_filled), sum(|ring| ring.pages))
    }

    /// Events lost, all causes, all rings.
    #[must_use]
    pub fn lost_total(&self) -> u64 {
        let rings = self.rings.iter().flat_map(|ring| ring.lost);
        self.lost
            .into_iter()
            .chain(rings)
            .fold(0, u64::saturating_add)
    }
}

impl RingInfo {
    /// How full the ring is, in percent: pages that are not released yet in discard mode, pages
    /// with data in overwrite mode.
    #[must_use]
    pub fn fill_percent(&self) -> u64 {
        percent(self.pages_filled.into(), self.pages.into())
    }
}

fn percent(part: u64, of: u64) -> u64 {
    (part * 100).checked_div(of).unwrap_or(0)
}

fn allocated(session: &Session) -> u64 {
    use ringmark_format::session::SessionState;
    let offset = core::mem::offset_of!(SessionState, allocated_bytes);
    let word = session.ring().state_word(offset);
    word.load(std::sync::atomic::Ordering::Relaxed)
}

/// The rings of a session now that have or had an owner.
pub(crate) fn rings(session: &Session) -> Vec<RingInfo> {
    let ring = session.ring();
    let name_of = thread_names::now(session);
    (0..ring.slots_used())
        .filter_map(|index| ring_info(session, index, &name_of))
        .filter(|info| info.claims > 0 && info.state != state::FREE)
        .collect()
}

fn ring_info(
    session: &Session,
    index: u32,
    name_of: impl Fn(&Owner) -> [u8; 16],
) -> Option<RingInfo> {
    let ring = session.ring();
    let slot = ring.slot(index)?;
    // `None` in the middle of a claim, where the words of two owners could mix.
    let owner = slot.owner();
    let geometry = slot.geometry();
    let valid = geometry.valid(ring.map().bytes());
    let (produced, consumed) = (slot.produced(), slot.consumed());
    let filled = match ring.geometry().mode {
        Mode::Discard => produced.saturating_sub(consumed),
        Mode::Overwrite => produced,
    };
    Some(RingInfo {
        slot: index,
        ring_id: owner.map_or(0, |owner| owner.ring_id.0),
        state: slot.state(),
        tid: owner.map_or(0, |owner| owner.tid),
        thread_name: thread_name(owner.map_or([0; 16], |owner| name_of(&owner))),
        page_bytes: if valid { geometry.page_bytes } else { 0 },
        pages: geometry.pages,
        produced,
        consumed,
        pages_filled: filled.min(u64::from(geometry.pages)) as u32,
        claims: slot.claims(),
        wait_ns: slot.ring_wait_ns(),
        lost: slot.lost(),
    })
}

/// A zero-padded name as text, with bytes that are not UTF-8 replaced.
fn thread_name(bytes: [u8; 16]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}
