//! What segments that are objects are made of: any number of collectors write to one store of them, and none
//! keeps anything that the others need.
//!
//! A session of a connection (`lane_session`) appends blocks to the one open segment (`open_segment`) of
//! its collector. The `lane` says when that is put, the `uploader` puts it, as `putting` says: schema first, then the segment
//! with its footer. Only then its bytes are acknowledged. `credits` bound what waits. `object_store` is
//! what objects are kept in, `file_objects` a directory; `identity` says which store it is.

pub(crate) mod credits;
mod file_objects;
pub(super) mod identity;
pub(super) mod lane;
mod lane_session;
mod object_store;
pub(super) mod open_segment;
pub(super) mod putting;
pub(super) mod uploader;

pub use file_objects::FileObjects;
pub(super) use lane_session::{LaneSession, SchemaStep};
pub use object_store::ObjectStore;
pub use putting::Then;
pub(crate) use uploader::Durable;
