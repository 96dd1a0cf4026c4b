//! The messages between a streamer and a collector. Every message is a block among those of the
//! trace; its content starts with one of these structs.

/// Kinds of blocks that occur on a connection only. They are never stored.
pub mod kind {
    /// Streamer, first of all: [`super::Hello`], then attributes.
    pub const HELLO: u16 = 32;
    /// Collector's answer: [`super::Welcome`], then attributes.
    pub const WELCOME: u16 = 33;
    /// Either side, the last block, for the session that is refused if it is one:
    /// [`super::Refused`], then the reason as text.
    pub const REFUSED: u16 = 34;
    /// Collector, after every SESSION block: [`super::Resume`], then [`super::ResumeSlot`]s.
    pub const RESUME: u16 = 35;
    /// Collector: [`super::Ack`].
    pub const ACK: u16 = 36;
    /// Collector: [`super::Ping`].
    pub const PING: u16 = 37;
    /// Streamer's answer: [`super::Pong`].
    pub const PONG: u16 = 38;
    /// Collector: it will close; say BYE and come back later. No content.
    pub const DRAIN: u16 = 39;
    /// Streamer: nothing follows; close when all is acknowledged. No content.
    pub const BYE: u16 = 40;
}

/// Why a peer was refused, for programs; the text of the message says it for people.
pub mod refusal {
    /// Not allowed: a token that is not the collector's, a host that the certificate does not
    /// name, or no TLS.
    pub const DENIED: u32 = 1;
    /// A newer major version of the protocol.
    pub const VERSION: u32 = 2;
    /// Blocks that contradict the protocol.
    pub const PROTOCOL: u32 = 3;
    /// The session's uuid belongs to another host.
    pub const FOREIGN: u32 = 4;
    /// The store cannot be written.
    pub const STORE: u32 = 5;
    /// Too many connections.
    pub const BUSY: u32 = 6;
}

/// What ACK says of the bytes that it acknowledges, in the attribute ACK_LEVEL of WELCOME.
pub mod ack_level {
    /// They are in the page cache of the collector's machine: they survive the collector's death.
    pub const CACHE: u32 = 1;
    /// They are on a disk of the collector's machine: they survive a loss of power.
    pub const DISK: u32 = 2;
    /// They are in an object store: they survive the collector's machine.
    pub const OBJECT: u32 = 3;
}

/// Major version of the protocol.
pub const STREAM_MAJOR: u16 = 1;
/// Minor version of the protocol.
pub const STREAM_MINOR: u16 = 1;
/// Longest time between two blocks of a collector, in ms: it sends a PING where it has no other.
pub const PING_EVERY_MS: u32 = 2000;
/// After this long without a block, in ms, the other side is taken for gone.
pub const SILENT_MS: u32 = 8000;
/// Longest time that a streamer waits for its last acknowledgements, in ms.
pub const END_MAX_MS: u32 = 120_000;
/// Slowest acknowledgement, in ms, with which a streamer sends pages by reference.
pub const REFERENCES_WITHIN_MS: u32 = 100;
/// Bytes of messages unknown to the collector that a streamer may send per PING it has received,
/// and once before the first.
pub const UNKNOWN_BYTES: u32 = 128 << 10;
/// The rates of two hosts' clocks differ by no more than this, in millionths.
pub const HOST_DRIFT_PPM: u32 = 200;

layout! {
    /// Content of a HELLO block; `attributes_bytes` bytes of attributes follow.
    pub struct Hello: 48 {
        /// [`STREAM_MAJOR`] of the streamer.
        0 version_major: u16,
        /// [`STREAM_MINOR`] of the streamer.
        2 version_minor: u16,
        /// Bytes of attributes that follow this struct.
        4 attributes_bytes: u32,
        /// Identity of the host: its machine id.
        8 host: [u8; 16],
        /// The host's boot id.
        24 boot_id: [u8; 16],
        /// `CLOCK_REALTIME` of the host in ns since 1970.
        40 real_ns: u64,
    }
}

layout! {
    /// Content of a WELCOME block; `attributes_bytes` bytes of attributes follow.
    pub struct Welcome: 40 {
        /// [`STREAM_MAJOR`] of the collector.
        0 version_major: u16,
        /// [`STREAM_MINOR`] of the collector.
        2 version_minor: u16,
        /// Bytes of attributes that follow this struct.
        4 attributes_bytes: u32,
        /// Identity of the store.
        8 collector: [u8; 16],
        /// `CLOCK_REALTIME` of the collector in ns since 1970.
        24 real_ns: u64,
        /// As in [`Ack`].
        32 credit: u64,
    }
}

layout! {
    /// Start of a REFUSED block's content; the reason follows as text.
    pub struct Refused: 8 {
        /// See [`refusal`].
        0 code: u32,
        /// Zero.
        4 reserved: u32,
    }
}

/// Flag of [`Resume::flags`]: the collector has nothing of the session, and names no slot.
pub const UNKNOWN: u32 = 1;
/// Flag of [`Resume::flags`]: schema that any collector of this store acknowledged is there.
pub const SCHEMA_ACKED: u32 = 2;
/// Flag of [`ResumeSlot::flags`]: damage may have cost pages from `next_page` on; those that are
/// still there are wanted again.
pub const AGAIN: u32 = 1;

layout! {
    /// Start of a RESUME block's content, for the session of the block: what is durable of it.
    pub struct Resume: 16 {
        /// Bytes of the schema stream, from its start.
        0 schema_bytes: u64,
        /// [`ResumeSlot`]s that follow.
        8 slots: u32,
        /// See [`UNKNOWN`] and [`SCHEMA_ACKED`].
        12 flags: u32,
    }
}

layout! {
    /// A slot in a RESUME block.
    pub struct ResumeSlot: 16 {
        /// Index in the ring directory.
        0 slot: u32,
        /// See [`AGAIN`].
        4 flags: u32,
        /// Sealed pages before this one are durable, or will never be sent.
        8 next_page: u64,
    }
}

layout! {
    /// Content of an ACK block. Counted are all bytes of blocks of kinds below HELLO that the
    /// streamer has sent on this connection, headers and padding included.
    pub struct Ack: 16 {
        /// Bytes that are durable.
        0 durable: u64,
        /// Bytes that may be sent in all. Never less than in an earlier ACK.
        8 credit: u64,
    }
}

layout! {
    /// Content of a PING block.
    pub struct Ping: 16 {
        /// Counted up from 1 on each connection.
        0 number: u64,
        /// `CLOCK_REALTIME` of the collector in ns since 1970.
        8 real_ns: u64,
    }
}

layout! {
    /// Content of a PONG block.
    pub struct Pong: 32 {
        /// As in the PING.
        0 number: u64,
        /// As in the PING.
        8 ping_real_ns: u64,
        /// `CLOCK_REALTIME` of the host in ns since 1970.
        16 real_ns: u64,
        /// `CLOCK_MONOTONIC` of the host in ns.
        24 mono_ns: u64,
    }
}

layout! {
    /// Content of a HOST_CLOCK block, for the session of the block: the clocks of its host and of
    /// the collector at one moment.
    pub struct HostClock: 32 {
        /// `CLOCK_REALTIME` of the collector in ns since 1970 at that moment.
        0 real_ns: u64,
        /// `CLOCK_REALTIME` of the host minus `real_ns`, ns, two's complement.
        8 offset_ns: i64,
        /// Bound of the error of `real_ns`: half the round trip, ns.
        16 error_ns: u64,
        /// `CLOCK_MONOTONIC` of the host at that moment, ns; 0: not known.
        24 mono_ns: u64,
    }
}

layout! {
    /// Which collector measured a HOST_CLOCK, after [`HostClock`].
    pub struct HostClockSource: 24 {
        /// Identity of the store whose collector measured; of the collector, where several share a store;
        /// zero in what a reader wrote.
        0 collector: [u8; 16],
        /// Bound of the error of that collector's own clock, ns; 0: not known.
        16 error_ns: u64,
    }
}
