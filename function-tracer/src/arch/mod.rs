//! Patch sites on one processor. A port fills one folder with the items used here.
//!
//! `x86_64` is the only folder, on every processor: it reads and writes bytes, so that files of x86-64 can be
//! read elsewhere, too. Only what stores into running code is there on x86-64 alone.
//!
//! - [`read`] tells a site from other code.
//! - [`Form`] holds the site's bytes and the steps between them.
//! - [`write_trampoline`] and [`write_hop`] make the code that a site calls.
//! - [`Steps`] decodes code; [`is_return`] and [`always_jumps`] say how a function ends.
//! - [`store_head`] changes the first bytes of an instruction that other threads may be executing.

mod x86_64;

pub(crate) use x86_64::{
    AS_AFTER_A_CALL, CODE_BYTES_MAX, CodeFrames, Form, HOP_BYTES, IN_HOPS, IN_MOVED,
    IN_TRAMPOLINES, MOVED_ADDRESSES, MOVED_CALL, MOVED_ENTRY, MOVED_SITE_FROM_CALL,
    MOVED_TRAMPOLINE_BYTES, MovedCode, REACH_BYTES, RETURN_COLUMN, ReturnPlace, Step, Steps,
    TRAMPOLINE_BYTES, always_jumps, is_return, lands_on_entry, prepare_decoder, read,
    read_empty_function, read_moved, read_several, safe_distances, write_hop,
    write_moved_trampoline, write_trampoline,
};
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{passing, store_head};

/// Why code is not that of a patch site.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnfitCode {
    /// The NOPs have fewer bytes than a call.
    #[error("{0} bytes of NOP, expected 5")]
    FewNops(usize),
    /// There is no NOP: another tool changed the code, or another compiler wrote it.
    #[error("found {0:02x?}, expected NOPs")]
    NotNops(Vec<u8>),
    /// Short NOPs that are not all of one byte. A thread may be between two of them, in the middle
    /// of what would be a call.
    #[error("found {0:02x?}, expected one NOP of 5 bytes or NOPs of one byte each")]
    BrokenNops(Vec<u8>),
    /// A NOP whose end cannot become a NOP of its own.
    #[error("a NOP of {0} bytes, expected 5 to 10")]
    LongNop(usize),
    /// A function was to do nothing but return, and does something else; or no padding follows it.
    #[error("found {0:02x?}, expected a return and padding")]
    NotEmpty(Vec<u8>),
    /// An instruction that does something else in another place, or none.
    #[error("found {0:02x?}, expected an instruction that can be moved")]
    Unmovable(Vec<u8>),
    /// A head of several bytes lies across two aligned words of 8.
    #[error("its first bytes are in two words: they cannot be changed at once")]
    Straddles,
}

/// Up to 12 bytes of code.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Bytes {
    bytes: [u8; Self::MAX],
    length: u8,
}

impl Bytes {
    const MAX: usize = 12;

    /// The first 12 of `bytes`.
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
    pub(crate) offset: i16,
    /// The bytes to write.
    pub(crate) bytes: Bytes,
}

/// Number of writes at most that take a site from one state to another. Every processor must have
/// seen one write before the next is done.
pub(crate) const STEPS: usize = 4;

/// What a patch site does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SiteState {
    /// Nothing, as its compiler made it.
    Disabled,
    /// It calls its trampoline.
    Enabled,
}

/// The table that a site was found in.
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
