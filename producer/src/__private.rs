//! What the macros, and Ringmark's own crates for C and for functions, need of this crate. No part
//! of the public interface: any release may change or remove it.

pub use crate::ring::writer::offsets as writer_offsets;

pub use crate::event::callsite::Callsite;
pub use crate::event::emit::foreign;
pub use crate::event::entry::Entry;
pub use crate::event::snapshot::Snapshot;
pub use crate::event::text::Text;
#[cfg(feature = "functions")]
pub use crate::platform::arch::function_site;
pub use crate::session::{helper, raw, without_trace};
pub use crate::setup::reference;
