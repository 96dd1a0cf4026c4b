//! One batch: the bytes compared, the text opened, the steps done with all processors in step
//! between them, the text closed.

use std::io;
use std::sync::Arc;

use super::code_writes::Window;
use super::patched::Patched;
use super::prepare::Change;
use super::refusal::Refusal;
use super::sync::sync;
use crate::arch::STEPS;
use crate::sites::loader::{self, Counts, Held};
use crate::sites::{Module, SiteId};

/// Sites of one batch. The loader's lock is held during one, and a fork waits for its end.
pub(crate) const SITES_MAX: usize = 4096;

/// How a batch ended.
#[derive(Debug)]
pub(crate) enum BatchEnd {
    /// All sites but those refused are switched.
    Done(Vec<(SiteId, Refusal)>),
    /// The loader has mapped or unmapped something: nothing was done.
    Stale,
}

/// Switches the sites of `changes`, all of one module, if the loader's counts are still `counts`.
pub(crate) fn run(patched: &mut Patched, changes: &[Change], counts: Counts) -> BatchEnd {
    let end = loader::hold(|held| {
        if held.counts != counts {
            return BatchEnd::Stale;
        }
        let module = &patched.module;
        let (changes, mut refused) = compare(held, module, changes);
        match write(held, module, &changes) {
            Ok(()) => {
                let done = changes.iter();
                done.for_each(|change| patched.set(change.index, change.after));
            }
            Err(error) => {
                let refusal = Refusal::Text(Arc::new(error));
                let ids = changes.iter().filter_map(|change| id(module, change));
                refused.extend(ids.map(|id| (id, refusal.clone())));
            }
        }
        BatchEnd::Done(refused)
    });
    end.unwrap_or(BatchEnd::Stale)
}

/// Sorts out sites that another tool has changed.
fn compare(
    held: &Held<'_>,
    module: &Module,
    changes: &[Change],
) -> (Vec<Change>, Vec<(SiteId, Refusal)>) {
    let (mut good, mut refused) = (Vec::new(), Vec::new());
    for change in changes {
        if held.is(&module.segments, change.address, &change.expected) {
            good.push(*change);
            continue;
        }
        let found = held.read(&module.segments, change.address, change.expected.len());
        let refusal = Refusal::Changed {
            found: found.unwrap_or_default(),
            expected: change.expected.to_vec(),
        };
        refused.extend(id(module, change).map(|id| (id, refusal)));
    }
    (good, refused)
}

fn id(module: &Module, change: &Change) -> Option<SiteId> {
    module.sites.get(change.index).map(|site| site.id)
}

/// Whatever step an error comes at, every site is left executable: no step makes it otherwise.
fn write(held: &Held<'_>, module: &Module, changes: &[Change]) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    // Nothing is written unless this works.
    sync()?;
    let place = |change: &Change| change.address..change.address + change.expected.len() as u64;
    let window = Window::open(held, &module.segments, changes.iter().map(place))?;
    let is_split = |change: &Change| !change.after.form.has_one_byte_head();
    if !window.has_whole_words() && changes.iter().any(is_split) {
        return Err(io::Error::other(
            "a two-byte head needs text that can be made writable",
        ));
    }
    for step in 0..STEPS {
        let mut is_written = false;
        for change in changes {
            if let Some(edit) = &change.steps[step] {
                window.write(
                    change.address + u64::from(edit.offset),
                    &edit.bytes,
                    edit.offset == 0,
                )?;
                is_written = true;
            }
        }
        if is_written {
            sync()?;
        }
    }
    window.close()
}
