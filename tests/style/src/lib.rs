//! The repository's own style as checks: each takes text, returns one line per finding, and has
//! a planted bad input of its own. `tests/tidy.rs` of this package runs them over the checkout.
#![forbid(unsafe_code)]

pub mod checkout;
pub mod circles;
pub mod deps;
pub mod docs;
pub mod floors;
pub mod houses;
pub mod imports;
pub mod lists;
pub mod machine;
pub mod modules;
pub mod orderings;
pub mod owners;
pub mod paths;
pub mod platforms;
pub mod promises;
pub mod scan;
pub mod sources;
pub mod targets;
pub mod traced;
pub mod troubleshooting;
pub mod unsafety;

pub use checkout::workspace_root;
pub use scan::Scanned;
pub use sources::{Source, read_sources};
