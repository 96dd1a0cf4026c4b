//! Pages become events in the order of time, with the losses between them.
//!
//! [`cursor`] walks one slot, [`merge`] joins the slots of all sessions. [`event`] is what both
//! give. [`filter`] and [`follow`] choose among events; [`stats`] counts them.

pub(crate) mod cursor;
pub(crate) mod event;
pub(crate) mod filter;
pub(crate) mod follow;
pub(crate) mod merge;
pub(crate) mod stats;
