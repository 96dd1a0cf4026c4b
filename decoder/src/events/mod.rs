//! Pages become events in the order of time, with the losses between them.
//!
//! [`cursor`] walks one slot, [`merge`] joins the slots of all sessions. [`event`] is what both
//! give. [`filter`] and [`follow`] choose among events, [`condition`] by a field; [`stats`] counts them.
//!
//! [`span`] is a span with beginning and end. [`span_pairs`] makes it of several records, keeping
//! each [`open_span`]; [`gaps`] says where records are missing. [`call_took`]
//! knows the durations of calls that have two records.

pub(crate) mod call_took;
mod condition;
pub(crate) mod cursor;
pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod follow;
pub(crate) mod gaps;
pub(crate) mod merge;
mod open_span;
pub(crate) mod span;
pub(crate) mod span_pairs;
pub(crate) mod stats;
