//! The columns of the table, by name.

use ringmark_format::schema::Level;

use crate::rows::cell;
use crate::rows::row::Row;
use crate::words::number::unsigned;

/// What the name of an argument's column begins with.
const ARG: &str = "arg_";

/// A column that every row has, or one argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Column {
    /// When it began, in ns since 1970.
    TsNs,
    /// How long it took, in ns.
    DurNs,
    /// `span`, `call`, or the kind of an event.
    Kind,
    /// Its name.
    Name,
    /// Its target, or the file of a function's module.
    Target,
    /// Its level.
    Level,
    /// Name of its host.
    Host,
    /// Name of its service.
    Service,
    /// Id of its session.
    Session,
    /// Id of its process.
    Pid,
    /// Id of its thread.
    Tid,
    /// Name of its thread.
    Thread,
    /// Id of its ring.
    Ring,
    /// Number of its page in the slot of its ring.
    Page,
    /// Number of its record in the page.
    Idx,
    /// Number of calls around a call.
    Depth,
    /// Events lost before it.
    LostBefore,
    /// Whether its beginning is not in what was chosen.
    Truncated,
    /// What its thread did while it lasted, in ns: ran.
    RunningNs,
    /// The same: was ready to run.
    ReadyNs,
    /// The same: waited.
    WaitingNs,
    /// The argument with this name.
    Arg(Vec<u8>),
}

/// See [`Column::all`].
static ALL: [(&str, Column); 18] = [
    ("ts_ns", Column::TsNs),
    ("dur_ns", Column::DurNs),
    ("kind", Column::Kind),
    ("name", Column::Name),
    ("target", Column::Target),
    ("level", Column::Level),
    ("host", Column::Host),
    ("service", Column::Service),
    ("session", Column::Session),
    ("pid", Column::Pid),
    ("tid", Column::Tid),
    ("thread", Column::Thread),
    ("ring", Column::Ring),
    ("page", Column::Page),
    ("idx", Column::Idx),
    ("depth", Column::Depth),
    ("lost_before", Column::LostBefore),
    ("truncated", Column::Truncated),
];
/// See [`Column::of_switches`].
static OF_SWITCHES: [(&str, Column); 3] = [
    ("running_ns", Column::RunningNs),
    ("ready_ns", Column::ReadyNs),
    ("waiting_ns", Column::WaitingNs),
];
/// Those that are the same for all records of a page: they are neighbours.
pub(super) const OF_PAGE: std::ops::Range<usize> = 6..14;

impl Column {
    /// The columns that every row has, in their order, each with its name.
    #[must_use]
    pub fn all() -> &'static [(&'static str, Self)] {
        &ALL
    }

    /// Those that rows have besides where switches of threads were recorded.
    pub(super) fn of_switches() -> &'static [(&'static str, Self)] {
        &OF_SWITCHES
    }

    /// The column that is called so. A name that is none of [`Self::all`] is that of an argument, with
    /// `arg_` before it or without.
    #[must_use]
    pub fn named(name: &str) -> Self {
        let found = ALL.iter().find(|(known, _)| *known == name);
        let arg = || Self::Arg(name.strip_prefix(ARG).unwrap_or(name).as_bytes().to_vec());
        found.map_or_else(arg, |(_, column)| column.clone())
    }

    /// Appends its name as a cell.
    pub(super) fn header(&self, out: &mut Vec<u8>) {
        let mut all = ALL.iter().chain(&OF_SWITCHES);
        match (self, all.find(|(_, column)| column == self)) {
            (_, Some((name, _))) => out.extend_from_slice(name.as_bytes()),
            (Self::Arg(name), None) => cell::text(&[ARG.as_bytes(), name].concat(), out),
            (_, None) => {}
        }
    }

    /// The text that a row has in it; `None`: it is no text of the dump.
    #[inline]
    pub(super) fn text<'d>(&self, row: &Row<'_, 'd>) -> Option<&'d [u8]> {
        let session = row.record.session;
        match self {
            Self::Name => Some(row.name),
            Self::Target => Some(row.target),
            Self::Host => Some(session.host()),
            Self::Service => Some(session.service()),
            Self::Thread => Some(row.thread()),
            _ => None,
        }
    }

    /// Appends the cell that a row has in it.
    pub(super) fn cell(&self, row: &Row<'_, '_>, out: &mut Vec<u8>) {
        let record = row.record;
        let known = |id: u32| (id != 0).then_some(id.into());
        match self {
            Self::TsNs => cell::number(row.start_ns, out),
            Self::DurNs => cell::number(row.dur_ns, out),
            Self::Kind => out.extend_from_slice(row.kind.as_bytes()),
            Self::Name | Self::Target | Self::Host | Self::Service | Self::Thread => {
                cell::text(self.text(row).unwrap_or_default(), out);
            }
            Self::Level => {
                out.extend_from_slice(row.level().map_or("", Level::name).as_bytes());
            }
            Self::Session => out.extend_from_slice(record.session.uuid.to_string().as_bytes()),
            Self::Pid => cell::number(known(record.pid()), out),
            Self::Tid => cell::number(known(record.tid()), out),
            Self::Ring => unsigned(record.ring().0, out),
            Self::Page => unsigned(record.page.number.0, out),
            Self::Idx => unsigned(row.index(), out),
            Self::Depth => cell::number(row.depth.map(u64::from), out),
            Self::LostBefore => unsigned(row.lost_before, out),
            Self::Truncated => {
                let is_so = if row.is_truncated { "true" } else { "false" };
                out.extend_from_slice(is_so.as_bytes());
            }
            Self::RunningNs => cell::number(row.did.map(|did| did.running_ns), out),
            Self::ReadyNs => cell::number(row.did.map(|did| did.ready_ns), out),
            Self::WaitingNs => cell::number(row.did.map(|did| did.waiting_ns), out),
            Self::Arg(name) => {
                let (mut budget, from) = (row.payload_bytes(), out.len());
                row.args(|found, field, value| {
                    if found == name.as_slice() {
                        // The last value of a field counts.
                        out.truncate(from);
                        cell::value((field, value), &mut budget, out);
                    }
                });
            }
        }
    }
}
