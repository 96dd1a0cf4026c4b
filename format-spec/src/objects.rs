//! Stores whose segments are objects: the footer of a segment, which says what it holds of which host.

layout! {
    /// Start of a FOOTER block, the last block of an object. `sessions` [`FooterSession`]s follow, each
    /// with its attributes and its index; then a [`FooterEnd`].
    pub struct Footer: 16 {
        /// Bytes of the object before this block.
        0 segment_bytes: u64,
        /// [`FooterSession`]s that follow.
        8 sessions: u32,
        /// Bit 0: the blocks of each session lie together, in the order of the sessions here (GROUPED).
        12 flags: u32,
    }
}

layout! {
    /// A session in a FOOTER block. `attributes_bytes` bytes of attributes follow (HOST: the proved
    /// host; SERVICE_NAME), then `index_bytes` bytes that are made like the content of an INDEX block.
    pub struct FooterSession: 40 {
        /// The session.
        0 session: [u8; 16],
        /// Bytes of the schema stream that its pages need, from its start.
        16 schema_bytes: u64,
        /// Number of the connection, as in PROGRESS; 0: the host did not say it.
        24 epoch: u32,
        /// Bytes of attributes that follow.
        28 attributes_bytes: u32,
        /// Bytes of the index that follows those; 0: there is none, the segment is read.
        32 index_bytes: u32,
        /// Bytes of its blocks in the segment; 0: the writer did not say it.
        36 bytes: u32,
    }
}

layout! {
    /// The last bytes of a FOOTER block, and so of an object.
    pub struct FooterEnd: 16 {
        /// Bytes of the FOOTER block, its header included.
        0 block_bytes: u64,
        /// FOOTER_MAGIC.
        8 magic: [u8; 8],
    }
}

/// The last bytes of an object.
pub const FOOTER_MAGIC: [u8; 8] = *b"RMKFOOT1";
/// Flag of a footer: the blocks of each session lie together, in the order of its sessions.
pub const GROUPED: u32 = 1;

/// Version of a store of objects: what the names of its objects and its footers mean.
pub const OBJECTS_VERSION: u32 = 2;
