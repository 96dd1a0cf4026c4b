//! The tables that `report`, `run` and `stat` print of a trace.

use super::figures::Figures;
use super::profile_table::TracerProfile;
use super::{event_table, span_table};
use crate::output::Table;

/// The tables of a trace: spans, profiles, events. One without rows is left out, unless all are.
pub(crate) fn tables(figures: &Figures<'_>, profiles: &[TracerProfile]) -> Vec<Table> {
    let mut tables = Vec::new();
    let spans = span_table::rows(figures);
    if !spans.is_empty() || figures.has_notices() {
        tables.push(span_table::table(&spans, figures));
    }
    tables.extend(profiles.iter().map(TracerProfile::table));
    let events = event_table::rows(&figures.events);
    if tables.is_empty() || !events.is_empty() {
        tables.push(event_table::table(&events));
    }
    tables
}
