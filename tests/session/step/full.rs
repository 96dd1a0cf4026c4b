//! The whole way: the ring file as it is now becomes a file of a process that is dead, the
//! recorder writes it to a dump, the decoder reads the dump.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::{Output, Value};
use ringmark_format::session::SessionHeader;
use ringmark_tests::recording::{decode, record};

use super::image::{Image, Record};

/// Has the session at `ring_file` recovered and decoded, and compares what comes out with the
/// image that the reader's drain gave.
pub(crate) fn check(
    ring_file: &Path,
    beside: &Path,
    image: &Image,
    discard: bool,
) -> Result<(), String> {
    let crashed = match crash_image(ring_file, beside) {
        Ok(crashed) => crashed,
        // A session in overwrite mode has removed its file in `close`: a crash leaves nothing.
        Err(error) if error.kind() == ErrorKind::NotFound && !discard => return Ok(()),
        Err(error) => return Err(format!("crash image: {error}")),
    };
    let dump = beside.join("crashed.rmk");
    record(&crashed, &dump);
    let dump = decode(&[dump]);
    let account = dump.verify();
    if !account.damage.is_empty() || account.contradictions + account.conflicts > 0 {
        return Err(format!("damaged: {account:?}"));
    }
    let expected = Expected::of(image, discard);
    let mut found = Vec::new();
    for item in dump.events() {
        if let Output::Event(event) = item {
            let id = event.args().find(|(field, _)| field.name == b"id");
            if let Some((_, Value::U64(id))) = id {
                found.push(id);
            }
        }
    }
    found.sort_unstable();
    let same = found == expected.ids
        && account.events == expected.committed
        && account.uncommitted == expected.busy
        && account.cancelled == expected.cancelled
        && account.lost == image.lost;
    if !same {
        return Err(format!(
            "decoded {found:x?}: {account:?}, expected {expected:x?}"
        ));
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Expected {
    ids: Vec<u64>,
    committed: u64,
    busy: u64,
    cancelled: u64,
}

impl Expected {
    /// What is at hand and not released.
    fn of(image: &Image, discard: bool) -> Self {
        let mut expected = Self::default();
        for page in &image.pages {
            let slot = image.slots.iter().find(|s| s.slot == page.slot);
            if discard && slot.is_some_and(|s| page.number < s.consumed) {
                continue;
            }
            for record in image.records_of(page) {
                match record {
                    Record::Event(id) => expected.ids.push(*id),
                    Record::Busy => expected.busy += 1,
                    Record::Cancelled => expected.cancelled += 1,
                    Record::Nameless => {}
                }
                let committed = matches!(record, Record::Event(_) | Record::Nameless);
                expected.committed += u64::from(committed);
            }
        }
        expected.ids.sort_unstable();
        expected
    }
}

/// A copy whose process, as its header says, started at a time at which nothing did.
fn crash_image(ring_file: &Path, beside: &Path) -> std::io::Result<PathBuf> {
    let crashed = beside.join("crashed.ring");
    fs::copy(ring_file, &crashed)?;
    let file = OpenOptions::new().write(true).open(&crashed)?;
    file.write_all_at(
        &1_u64.to_le_bytes(),
        offset_of!(SessionHeader, start_time) as u64,
    )?;
    Ok(crashed)
}
