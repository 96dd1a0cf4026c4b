//! Pages become events in the order of time, with the losses between them.
//!
//! [`cursor`] walks one slot: its records ([`slot_records`]), the losses between its pages, and the
//! spans that its thread is in ([`entered_spans`]). [`merge`] joins the slots of all sessions; [`apart`] those that share
//! a thread only.
//! [`event`] is what both give, [`payload`] the bytes of its fields. [`filter`] and [`follow`] choose among events, [`condition`] by a field; [`filter_times`]
//! says where a time lies for a filter, [`stats`] counts events.
//!
//! [`nesting`] says how much of the time of something was spent in what lay in it.
//!
//! [`span`] is a span with beginning and end. [`span_pairs`] makes it of several records, keeping
//! each [`open_span`]; [`gaps`] says where records are missing. [`call_took`]
//! knows the durations of calls that have two records. [`span_contents`] says which records belong to a span.

mod apart;
pub(crate) mod call_took;
mod condition;
pub(crate) mod cursor;
mod entered_spans;
pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod filter_error;
pub(crate) mod filter_times;
pub(crate) mod follow;
pub(crate) mod gaps;
pub(crate) mod merge;
pub(crate) mod nesting;
mod open_span;
pub(crate) mod payload;
mod slot_records;
pub(crate) mod span;
pub(crate) mod span_contents;
pub(crate) mod span_pairs;
pub(crate) mod stats;
pub(crate) mod stay;
