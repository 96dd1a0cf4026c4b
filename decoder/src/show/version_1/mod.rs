//! JSON as it was before version 2, for one release: `--json=1`.

pub(crate) mod calls;
pub(crate) mod events;
