//! The schema stream, put together from its pieces.
//!
//! SCHEMA blocks hold pieces of one append-only stream per session. The pieces of several files
//! overlap and may arrive in any order; where they overlap they must agree.

use std::collections::BTreeMap;

use crate::blocks::damage::Fault;

/// Pieces of the schema stream by offset. Bytes that are given twice are kept once.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    /// The stream from its start up to the first gap. Pieces that come in order are only here.
    front: Vec<u8>,
    /// What is beyond.
    pieces: BTreeMap<u64, Vec<u8>>,
    /// Bytes that were there already.
    pub(crate) repeated: u64,
}

impl Pieces {
    /// Adds a piece that starts at `offset` in the stream, and keeps the bytes that are new.
    pub(crate) fn add(&mut self, offset: u64, bytes: &[u8]) -> Result<(), Fault> {
        if offset.checked_add(bytes.len() as u64).is_none() {
            return Err(Fault::Value {
                what: "offset in the schema stream",
                found: offset,
                expected: u64::MAX - bytes.len() as u64,
            });
        }
        let (mut at, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let step = match self.at(at) {
                Some(there) => {
                    let common = there.len().min(rest.len());
                    if let Some(differs) = (0..common).find(|i| there[*i] != rest[*i]) {
                        let at = at + differs as u64;
                        return Err(Fault::SchemaConflict { at });
                    }
                    self.repeated += common as u64;
                    common
                }
                None => {
                    let next = self.pieces.range(at..).next().map(|(k, _)| k - at);
                    let free = next.map_or(rest.len() as u64, |n| n.min(rest.len() as u64));
                    self.insert(at, &rest[..free as usize]);
                    free as usize
                }
            };
            at += step as u64;
            rest = &rest[step..];
        }
        Ok(())
    }

    /// Puts bytes where none are. Those that follow the front join it, and so do the pieces that they
    /// reach.
    fn insert(&mut self, at: u64, bytes: &[u8]) {
        if at != self.front.len() as u64 {
            self.pieces.insert(at, bytes.to_vec());
            return;
        }
        self.front.extend_from_slice(bytes);
        while let Some(next) = self.pieces.remove(&(self.front.len() as u64)) {
            self.front.extend_from_slice(&next);
        }
    }

    /// The bytes from `at` to the end of the piece that has it.
    fn at(&self, at: u64) -> Option<&[u8]> {
        if let Some(rest) = usize::try_from(at).ok().and_then(|at| self.front.get(at..))
            && !rest.is_empty()
        {
            return Some(rest);
        }
        let (start, piece) = self.pieces.range(..=at).next_back()?;
        let from = usize::try_from(at - start).ok()?;
        piece.get(from..).filter(|rest| !rest.is_empty())
    }

    /// The stream from its start up to the first gap, and the gap: its first byte, and the first
    /// byte that is there again.
    pub(crate) fn join(self) -> (Vec<u8>, Option<(u64, u64)>) {
        let length = self.front.len() as u64;
        let again = self.pieces.keys().next().map(|start| (length, *start));
        (self.front, again)
    }
}
