//! A stream file: packets of one thread.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::PathBuf;

use ringmark_decoder::escape;
use ringmark_format::Uuid;

/// First word of every packet.
const MAGIC: u32 = 0xC1FC_1FC1;
/// Bytes of the fields of a packet before the thread's name.
const FIXED_BYTES: usize = 4 + 16 + 4 + 6 * 8 + 4;

/// A stream that is being written. Its file is open only while a packet is written: there may be
/// more threads than a process may have open files.
#[derive(Debug)]
pub(super) struct Stream {
    path: PathBuf,
    trace: Uuid,
    tid: u32,
    name: Vec<u8>,
    /// The events of the packet.
    events: Vec<u8>,
    begin_ns: u64,
    last_ns: u64,
    /// Events that are not here, before the packet, and before the one that was written last.
    discarded: u64,
    written_discarded: u64,
    packets: u64,
    /// Bytes written.
    pub(super) bytes: u64,
}

impl Stream {
    /// A stream in a new file.
    pub(super) fn new(path: PathBuf, trace: Uuid, tid: u32, name: &[u8]) -> Self {
        let mut shown = Vec::new();
        escape::text(name, &mut shown);
        shown.push(0);
        Self {
            path,
            trace,
            tid,
            name: shown,
            events: Vec::new(),
            begin_ns: 0,
            last_ns: 0,
            discarded: 0,
            written_discarded: 0,
            packets: 0,
            bytes: 0,
        }
    }

    /// Appends an event. Times of a stream never go back.
    pub(super) fn event(&mut self, class: u32, at_ns: u64, payload: impl FnOnce(&mut Vec<u8>)) {
        let at_ns = at_ns.max(self.last_ns);
        if self.events.is_empty() {
            self.begin_ns = at_ns;
        }
        self.last_ns = at_ns;
        self.events.extend_from_slice(&class.to_le_bytes());
        self.events.extend_from_slice(&at_ns.to_le_bytes());
        payload(&mut self.events);
    }

    /// Events are missing at this place.
    pub(super) fn lose(&mut self, count: u64, at_ns: u64) -> io::Result<()> {
        self.flush()?;
        if self.packets == 0 {
            // What the first packet says has nothing to be compared with.
            (self.begin_ns, self.last_ns) = (at_ns, at_ns);
            self.packet()?;
        }
        self.discarded = self.discarded.saturating_add(count);
        Ok(())
    }

    /// Ends the packet, if it holds anything.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        match self.events.is_empty() {
            true => Ok(()),
            false => self.packet(),
        }
    }

    /// Writes what is left.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.flush()?;
        if self.discarded != self.written_discarded {
            self.begin_ns = self.last_ns;
            self.packet()?;
        }
        Ok(())
    }

    fn packet(&mut self) -> io::Result<()> {
        let bytes = FIXED_BYTES + self.name.len() + self.events.len();
        let mut packet = Vec::with_capacity(bytes);
        packet.extend_from_slice(&MAGIC.to_le_bytes());
        packet.extend_from_slice(&self.trace.0);
        packet.extend_from_slice(&0_u32.to_le_bytes());
        let bits = 8 * bytes as u64;
        for word in [
            self.begin_ns,
            self.last_ns,
            bits,
            bits,
            self.discarded,
            self.packets,
        ] {
            packet.extend_from_slice(&word.to_le_bytes());
        }
        packet.extend_from_slice(&self.tid.to_le_bytes());
        packet.extend_from_slice(&self.name);
        packet.append(&mut self.events);
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        options.open(&self.path)?.write_all(&packet)?;
        self.packets += 1;
        self.written_discarded = self.discarded;
        self.bytes += packet.len() as u64;
        Ok(())
    }
}
