//! The bytes of an event's fields.

use std::fmt;
use std::ops::Deref;
use std::rc::Rc;

/// The bytes of an event's fields: a multiple of 8.
///
/// They lie in the page of the event, which is in memory as long as the walk is in it, or as
/// something holds a payload of it. [`Self::alone`] is for those that are held for long.
#[derive(Clone)]
pub struct Payload {
    page: Rc<Vec<u8>>,
    start: u32,
    end: u32,
}

impl Payload {
    /// A part of a page.
    #[inline]
    pub(crate) const fn new(page: Rc<Vec<u8>>, start: u32, end: u32) -> Self {
        Self { page, start, end }
    }

    /// A copy of these bytes.
    pub(crate) fn copy(bytes: &[u8]) -> Self {
        Self::new(Rc::new(bytes.to_vec()), 0, bytes.len() as u32)
    }

    /// The same bytes, without the page around them.
    #[must_use]
    pub fn alone(&self) -> Self {
        Self::copy(self)
    }
}

impl Deref for Payload {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let part = self.start as usize..self.end as usize;
        self.page.get(part).unwrap_or_default()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self[..].fmt(f)
    }
}

/// A copy of the bytes of a function record's fields. Those of most records are a word or none, which
/// needs no memory of its own.
#[derive(Debug, Clone)]
pub(crate) enum FewBytes {
    None,
    Word([u8; 8]),
    Others(Rc<Vec<u8>>),
}

impl FewBytes {
    #[inline]
    pub(crate) fn of(bytes: &[u8]) -> Self {
        match bytes.try_into() {
            Ok(word) => Self::Word(word),
            Err(_) if bytes.is_empty() => Self::None,
            Err(_) => Self::Others(Rc::new(bytes.to_vec())),
        }
    }
}

impl Deref for FewBytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Word(word) => word,
            Self::Others(bytes) => bytes,
        }
    }
}
