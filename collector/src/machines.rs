//! The state machines of a collector of objects, which know neither threads, sockets nor clocks: for tests and
//! models that drive them.

pub use crate::peer::stepped::{SteppedConnection, Taken};
pub use crate::set_clock::SetClock;
pub use crate::store::objects::Then;
pub use crate::store::stepped_objects::{CountedSession, Put, SteppedObjects};
pub use crate::unproved::{Place, Unproved};
