//! What a processor has to say about sites. A port fills one folder with the items used here:
//! [`read`] tells a site from other code, [`Form`] holds the site's bytes and the steps between
//! them, [`write_pad`] and [`write_hop`] make the code that a site calls, [`store_head`] changes
//! the first bytes of an instruction that other threads may be executing.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    CODE_BYTES_MAX, Form, HOP_BYTES, PAD_BYTES, REACH_BYTES, ReturnPlace, is_return,
    lands_on_entry, read, safe_distances, store_head, write_hop, write_pad,
};

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "ringmark-function-tracer knows x86-64 only: fill a folder of function-tracer/src/arch"
);

/// Why code is not that of a site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitCode {
    /// Fewer bytes than a call needs.
    #[error("{0} bytes of NOP, expected 5")]
    FewNops(usize),
    /// No NOP at all: another tool changed it, or another compiler wrote it.
    #[error("found {0:02x?}, expected NOPs")]
    NotNops(Vec<u8>),
    /// Short NOPs that are not all of one byte: a thread may rest where a call would go on.
    #[error("found {0:02x?}, expected one NOP of 5 bytes or NOPs of one byte each")]
    BrokenNops(Vec<u8>),
    /// A NOP whose end cannot become one of its own.
    #[error("a NOP of {0} bytes, expected 5 to 10")]
    LongNop(usize),
    /// A two-byte head across two aligned words of 8.
    #[error("its first two bytes lie in two words: they cannot be changed at once")]
    Straddles,
}

/// A few bytes of code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl Bytes {
    const MAX: usize = 12;

    /// The first twelve of `bytes`.
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let mut new = Self::default();
        for (to, from) in new.bytes.iter_mut().zip(bytes) {
            *to = *from;
            new.length += 1;
        }
        new
    }
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

/// One write into a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Edit {
    /// Distance from the site's first byte.
    pub(crate) offset: u8,
    /// What goes there.
    pub(crate) bytes: Bytes,
}

/// The writes that take a site from one state to another. All processors must have seen one
/// before the next is done.
pub(crate) const STEPS: usize = 4;

/// What a site does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// What it does without us: nothing.
    Rest,
    /// It calls its pad.
    Open,
}

/// Which list a site was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// `__patchable_function_entries`.
    Patchable,
    /// `__mcount_loc`.
    Mcount,
    /// `ringmark_functions`.
    Inside,
    /// `__return_loc`.
    Return,
    /// An entry or tail sled of `xray_instr_map`.
    SledEntry,
    /// An exit sled of `xray_instr_map`.
    SledExit,
}
