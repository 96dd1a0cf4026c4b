//! Two copies of one page become one.
//!
//! A page that was read while it was open comes again with more records. A committed record fills
//! the hole of the other copy, and the longer copy gives the end. Records are never changed after
//! their commit, so two committed records that differ are a conflict.

use ringmark_format::page::PageHeader;
use ringmark_format::record::{self, Header};

use crate::blocks::content::Content;
use crate::blocks::damage::Fault;
use crate::blocks::page::Page;

/// What a further copy of a page brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Joined {
    /// Nothing that was not there.
    Repeated,
    /// More records, or the seal.
    Fuller,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |w| u64::from_le_bytes(*w))
}

/// Bytes of the record at `at`, if its header makes sense there.
fn record_bytes(bytes: &[u8], at: usize) -> Option<usize> {
    let header = record::unpack(word(bytes, at));
    let words = header.words(|| Some(word(bytes, at + 8)))?;
    let bytes_left = (bytes.len() - at) as u64;
    let fits = words.checked_mul(8)? <= bytes_left;
    fits.then_some(8 * words as usize)
}

/// The conflict of two copies whose record at `at` differs: the first word that differs, and
/// what each copy has there.
fn conflict(at: usize, found: &[u8], kept: &[u8]) -> Fault {
    let differs = (at..found.len().min(kept.len()))
        .step_by(8)
        .find(|at| word(found, *at) != word(kept, *at))
        .unwrap_or(at);
    Fault::Conflict {
        at: differs as u32,
        found: word(found, differs),
        kept: word(kept, differs),
    }
}

/// Joins `new` with the bytes `fresh` into `kept`, which has the same identity. After a conflict
/// `kept` is as it was.
///
/// The seal of either copy counts, and the earlier of their windows.
pub(crate) fn join(kept: &mut Page, new: Page, fresh: &[u8]) -> Result<Joined, Fault> {
    let held = kept.bytes();
    let old = &held[..];
    if old.len() < PageHeader::BYTES {
        return Ok(Joined::Repeated);
    }
    if kept.page_bytes != new.page_bytes {
        return Err(Fault::Value {
            what: "page size of a further copy",
            found: new.page_bytes.into(),
            expected: kept.page_bytes.into(),
        });
    }
    if old[..PageHeader::BYTES] != fresh[..PageHeader::BYTES] {
        return Err(conflict(0, fresh, old));
    }
    let sealed = kept.sealed || new.sealed;
    let joined = join_records(old, fresh)?;
    let more = joined.is_some() || sealed != kept.sealed;
    drop(held);
    if let Some(joined) = joined {
        kept.extent = joined.len() as u32;
        kept.content = match joined == fresh {
            true => new.content,
            false => Content::Held(joined.into()),
        };
    }
    kept.sealed = sealed;
    kept.from_mono_ns = kept.from_mono_ns.min(new.from_mono_ns);
    Ok(if more {
        Joined::Fuller
    } else {
        Joined::Repeated
    })
}

/// The records of both, in the order of their offsets; `None`: they are those of `old`. Time and
/// memory are those of `fresh` alone until it brings something.
fn join_records(old: &[u8], fresh: &[u8]) -> Result<Option<Vec<u8>>, Fault> {
    if old.starts_with(fresh) {
        return Ok(None);
    }
    let mut at = PageHeader::BYTES;
    // Made when the first record differs from that of `old`.
    let mut joined: Option<Vec<u8>> = None;
    loop {
        let (a, b) = (word(old, at), word(fresh, at));
        if at >= old.len() || a == 0 {
            let mut joined = joined.unwrap_or_else(|| old[..at.min(old.len())].to_vec());
            joined.extend_from_slice(fresh.get(at..).unwrap_or_default());
            joined.extend_from_slice(old.get(joined.len()..).unwrap_or_default());
            return Ok((joined != *old).then_some(joined));
        }
        if at >= fresh.len() || b == 0 {
            if joined.is_none() && fresh.len() <= old.len() {
                return Ok(None);
            }
            let mut joined = joined.unwrap_or_else(|| old[..at].to_vec());
            joined.extend_from_slice(&old[at..]);
            joined.extend_from_slice(fresh.get(joined.len()..).unwrap_or_default());
            return Ok((joined != *old).then_some(joined));
        }
        let piece = join_record(old, fresh, at)?;
        let is_of_old = std::ptr::eq(piece.as_ptr(), old[at..].as_ptr());
        if joined.is_none() && !is_of_old && !old[at..].starts_with(piece) {
            joined = Some(old[..at].to_vec());
        }
        if let Some(joined) = &mut joined {
            joined.extend_from_slice(piece);
        }
        at += piece.len();
    }
}

/// The bytes at `at` that both agree on, or that fill the other's hole.
fn join_record<'a>(old: &'a [u8], fresh: &'a [u8], at: usize) -> Result<&'a [u8], Fault> {
    let busy = |bytes| matches!(record::unpack(word(bytes, at)), Header::Busy(_));
    let (from, other) = if busy(old) {
        (fresh, old)
    } else {
        (old, fresh)
    };
    let Some(bytes) = record_bytes(from, at) else {
        // PAD or damage: the copies must agree to the end; the check reports the damage.
        let (a, b) = (&old[at..], &fresh[at..]);
        let common = a.len().min(b.len());
        if word(old, at) != word(fresh, at) {
            return Err(conflict(at, fresh, old));
        }
        return Ok(if a.len() > common { a } else { b });
    };
    let piece = &from[at..at + bytes];
    if busy(other) {
        return fill(old, fresh, from, other, at);
    }
    let shared = bytes.min(other.len() - at);
    if piece[..shared] != other[at..at + shared] {
        return Err(conflict(at, fresh, old));
    }
    Ok(piece)
}

/// `other` has a hole of some length at `at`. `from` must have the same hole there, or whole
/// records that fill it: one, or a time extension and one.
fn fill<'a>(
    old: &[u8],
    fresh: &[u8],
    from: &'a [u8],
    other: &[u8],
    at: usize,
) -> Result<&'a [u8], Fault> {
    let hole = record_bytes(other, at).ok_or_else(|| conflict(at, fresh, old))?;
    let mut end = at;
    while end < at + hole {
        match record_bytes(from, end) {
            Some(bytes) => end += bytes,
            None => return Err(conflict(at, fresh, old)),
        }
    }
    if end != at + hole {
        return Err(conflict(at, fresh, old));
    }
    Ok(&from[at..end])
}
