//! A trace file of the demo, read back whole.

use std::fs;
use std::path::Path;

use ringmark_decoder::{Dump, DumpBuilder};

use ringmark_console::Failure;

/// What a trace file holds.
///
/// # Errors
/// It cannot be opened, or is none.
pub(super) fn read(path: &Path) -> anyhow::Result<Dump> {
    let name = path.display().to_string();
    let file = fs::File::open(path)
        .map_err(|error| Failure::unreadable(format!("{name}: cannot be opened: {error}")))?;
    let mut builder = DumpBuilder::new();
    let read = builder.read(&name, file);
    read.map_err(|damage| Failure::unreadable(damage.to_string()))?;
    Ok(builder.finish())
}
