//! One batch: compares the sites' bytes, opens the code for writing, does the steps with all
//! processors in line between them, closes the code.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use super::code_writes::{CodeWindow, serialize_processors};
use super::patched::PatchedModule;
use super::prepare::SiteChange;
use super::refusal::{Refusal, RefusedSite};
use crate::arch::STEPS;
use crate::sites::loader::{self, Counts, Held};
use crate::sites::{Module, SiteId};

/// Sites of one batch at most: the loader's lock is held during a batch, and a fork waits for its
/// end.
pub(crate) const SITES_MAX: usize = 4096;

/// How a batch ended.
#[derive(Debug)]
pub(crate) enum BatchEnd {
    /// All sites but those refused are changed.
    Done(Vec<RefusedSite>),
    /// The loader mapped or unmapped a module since the list was made: nothing was done.
    Stale,
}

/// Changes the sites of `changes`, all of one module, if the loader's counts are still `counts`.
pub(crate) fn run(patched: &mut PatchedModule, changes: &[SiteChange], counts: Counts) -> BatchEnd {
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
                let refusal = Refusal::Code(Arc::new(error));
                let sites = changes.iter().filter_map(|change| id(module, change));
                refused.extend(sites.map(|site| RefusedSite {
                    site,
                    refusal: refusal.clone(),
                }));
            }
        }
        BatchEnd::Done(refused)
    });
    end.unwrap_or(BatchEnd::Stale)
}

/// Takes note of the changes that another hand has done. Returns how many.
pub(crate) fn done_elsewhere(
    held: &Held<'_>,
    patched: &mut PatchedModule,
    changes: &[SiteChange],
) -> usize {
    let mut done = 0;
    for change in changes {
        let mut edits = change.steps.iter().flatten();
        let is_there = edits.all(|edit| {
            let at = change.address.wrapping_add_signed(edit.offset.into());
            held.is(&patched.module.segments, at, &edit.bytes)
        });
        if is_there {
            patched.set(change.index, change.after);
            done += 1;
        }
    }
    done
}

/// Separates sites with the expected bytes from sites that another tool has changed.
fn compare(
    held: &Held<'_>,
    module: &Module,
    changes: &[SiteChange],
) -> (Vec<SiteChange>, Vec<RefusedSite>) {
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
        refused.extend(id(module, change).map(|site| RefusedSite { site, refusal }));
    }
    (good, refused)
}

fn id(module: &Module, change: &SiteChange) -> Option<SiteId> {
    module.sites.get(change.index).map(|site| site.id)
}

/// Writes all steps of `changes`. After an error every site can still be executed, because each
/// step leaves it so.
fn write(held: &Held<'_>, module: &Module, changes: &[SiteChange]) -> io::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    // Nothing is written unless this works.
    serialize_processors()?;
    let places = changes.iter().flat_map(places);
    let window = CodeWindow::open(held, &module.segments, places)?;
    let needs_whole_head = |change: &SiteChange| change.needs_whole_head;
    if !window.has_whole_words() && changes.iter().any(needs_whole_head) {
        return Err(io::Error::other(
            "a head of several bytes needs text that can be made writable",
        ));
    }
    for step in 0..STEPS {
        let mut is_written = false;
        for change in changes {
            if let Some(edit) = &change.steps[step] {
                window.write(
                    change.address.wrapping_add_signed(edit.offset.into()),
                    &edit.bytes,
                    edit.offset == 0 && !change.is_held,
                )?;
                is_written = true;
            }
        }
        if is_written {
            serialize_processors()?;
        }
    }
    window.close()
}

/// The bytes that a change writes or replaces.
fn places(change: &SiteChange) -> impl Iterator<Item = Range<u64>> + Clone {
    let site = change.address..change.address + change.expected.len() as u64;
    let edits = change.steps.into_iter().flatten().map(|edit| {
        let start = change.address.wrapping_add_signed(edit.offset.into());
        start..start + edit.bytes.len() as u64
    });
    std::iter::once(site).chain(edits)
}
