//! The control mailbox: one request at a time, answered by the producer's helper thread.
//!
//! Controllers are commands of a person or another program. They take turns by a lock on the
//! region; request and answer are texts.

layout! {
    /// Start of the mailbox region. A controller holds the region's lock (an OFD lock on the
    /// file's byte at `mailbox_offset`), writes the request, then `request_seq`, then wakes the
    /// futex; the helper takes it in `decided`, writes the answer, then `answer_seq`. Until it is
    /// taken, a controller can take it back there.
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
        /// Who has request n: 4n + 1 the producer, which has begun; 4n + 2 neither side, its
        /// controller has taken it back. 0: no request was decided yet.
        32 decided: u64,
        /// Grows while the producer works on a request.
        40 progress: u64,
        /// Zero.
        48 reserved_words: [u64; 2],
    }
}

/// Size of the mailbox region in bytes.
pub const MAILBOX_BYTES: usize = 8192;
/// Offset of the request text in the region, in bytes.
pub const REQUEST_OFFSET: usize = MailboxHeader::BYTES;
/// Bytes of the largest request and of the largest answer.
pub const TEXT_BYTES_MAX: usize = (MAILBOX_BYTES - MailboxHeader::BYTES) / 2;
/// Offset of the answer text in the region, in bytes.
pub const ANSWER_OFFSET: usize = REQUEST_OFFSET + TEXT_BYTES_MAX;
