//! The control mailbox: one request at a time, answered by the producer's helper thread.

layout! {
    /// Start of the mailbox region. A controller holds the region's lock (an OFD lock on the
    /// file's byte at `mailbox_offset`), writes the request, then `request_seq`, then wakes the
    /// futex; the helper writes the answer, then `answer_seq`.
    pub struct MailboxHeader: 64 {
        /// Number of the latest request; its low 32 bits are the futex word.
        0 request_seq: u64,
        /// Number of the latest answered request.
        8 answer_seq: u64,
        /// Bytes of the request text.
        16 request_bytes: u32,
        /// Bytes of the answer text.
        20 answer_bytes: u32,
        /// 0: done, else an error; the text says what.
        24 answer_status: u32,
        /// Zero.
        28 reserved: u32,
        /// Zero.
        32 reserved_words: [u64; 4],
    }
}

/// Size of the mailbox region.
pub const MAILBOX_BYTES: usize = 8192;
/// Offset of the request text in the region.
pub const REQUEST_OFFSET: usize = MailboxHeader::BYTES;
/// Largest request and largest answer.
pub const TEXT_BYTES_MAX: usize = (MAILBOX_BYTES - MailboxHeader::BYTES) / 2;
/// Offset of the answer text in the region.
pub const ANSWER_OFFSET: usize = REQUEST_OFFSET + TEXT_BYTES_MAX;
