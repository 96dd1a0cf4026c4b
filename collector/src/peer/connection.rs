//! The two directions of a connection: whole blocks in, within bounds of memory and time; messages
//! out, PINGs among them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::BlockAt;
use ringmark_format::stream::{HostClock, Pong, SILENT_MS, refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant as TokioInstant, timeout, timeout_at};

use crate::block_memory::Part;
use crate::connection_context::Common;
use crate::connection_end::End;
use crate::host_clock::Pings;
use crate::incoming_block;
use crate::listen::{Bytes, say_and_close};
use crate::messages;

/// How long a peer may be silent.
pub(super) const SILENT: Duration = Duration::from_millis(SILENT_MS as u64);
/// A connection's own buffer; blocks that are larger take from the memory of all.
pub(super) const BUFFER: usize = 16 << 10;
/// How often a connection that waits looks around.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Least speed of a large block, bytes per second: no peer holds memory for ever.
const SLOWEST: u64 = 64 << 10;

/// A connection: its buffer and its PINGs.
pub(super) struct Connection {
    bytes: Box<dyn Bytes>,
    common: Arc<Common>,
    buffer: Vec<u8>,
    /// What a block larger than [`BUFFER`] takes of the memory of all.
    part: Option<Part>,
    pings: Pings,
    /// When the next PING is due; none before the greeting is over.
    ping_at: Option<TokioInstant>,
}

impl Connection {
    pub(super) fn new(bytes: Box<dyn Bytes>, common: Arc<Common>) -> Self {
        Self {
            bytes,
            common,
            buffer: Vec::with_capacity(BUFFER),
            part: None,
            pings: Pings::default(),
            ping_at: None,
        }
    }

    /// Waits until `until` for more bytes; returns whether any came.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn read_until(&mut self, until: TokioInstant) -> Result<bool, End> {
        match timeout_at(until, self.bytes.read_buf(&mut self.buffer)).await {
            Ok(Ok(0)) => Err(End::Gone),
            Ok(read) => Ok(read? > 0),
            Err(_) => Ok(false),
        }
    }

    /// The header at the buffer's front; `None`: not all of it is there.
    ///
    /// # Errors
    /// It is no header of a block.
    pub(super) fn header(&self) -> Result<Option<BlockHeader>, End> {
        incoming_block::header(&self.buffer).map_err(End::protocol)
    }

    /// Waits until `deadline` for the header of a block.
    ///
    /// # Errors
    /// It is no header of a block, or none came.
    pub(super) async fn next_header(&mut self, deadline: TokioInstant) -> Result<BlockHeader, End> {
        loop {
            if let Some(header) = self.header()? {
                return Ok(header);
            }
            if !self.read_until(deadline).await? {
                return Err(End::Gone);
            }
        }
    }

    /// The whole block at the buffer's front, which has been filled in.
    pub(super) fn block(&self, header: &BlockHeader) -> BlockAt<'_> {
        incoming_block::whole(header, &self.buffer)
    }

    /// The checked content of the block at the buffer's front.
    ///
    /// # Errors
    /// Its checksum is another one.
    pub(super) fn content(&self, header: &BlockHeader) -> Result<&[u8], End> {
        self.block(header).content().map_err(End::protocol)
    }

    /// Reads a block to its end: takes memory for it, and bounds its time by its size.
    ///
    /// # Errors
    /// The peer is gone, or too slow.
    pub(super) async fn fill_block(&mut self, header: &BlockHeader) -> Result<(), End> {
        let whole = header.whole_bytes();
        if self.buffer.len() >= whole {
            return Ok(());
        }
        let seconds = whole as u64 / SLOWEST;
        self.fill(whole, SILENT + Duration::from_secs(seconds))
            .await
    }

    /// Reads until `bytes` are in the buffer. What is more than a connection's own memory is taken
    /// from that of all.
    ///
    /// # Errors
    /// The peer is gone, or too slow.
    pub(super) async fn fill(&mut self, bytes: usize, within: Duration) -> Result<(), End> {
        if bytes > BUFFER && self.part.is_none() {
            self.take_memory(bytes).await?;
        }
        let begun = Instant::now();
        let mut heard_at = begun;
        self.buffer
            .reserve_exact(bytes.saturating_sub(self.buffer.len()));
        while self.buffer.len() < bytes {
            let left = within.saturating_sub(begun.elapsed());
            let until = TokioInstant::now() + left.min(LOOK_EVERY);
            if self.read_until(until).await? {
                heard_at = Instant::now();
            }
            if self.buffer.len() < bytes {
                let is_silent = heard_at.elapsed() >= SILENT;
                self.check_pace(bytes, begun, is_silent || begun.elapsed() >= within)?;
                self.ping_if_due().await?;
            }
        }
        Ok(())
    }

    /// Gives up a block that comes too slowly.
    fn check_pace(&self, bytes: usize, begun: Instant, is_over: bool) -> Result<(), End> {
        let (there, after) = (self.buffer.len(), begun.elapsed());
        let text = || format!("{there} of {bytes} bytes after {} s", after.as_secs());
        if is_over {
            return Err(End::protocol(text()));
        }
        match &self.part {
            Some(part) if self.common.memory.is_wanted_back(part) => Err(End::Refused(
                refusal::BUSY,
                format!("{}, and others wait for the memory", text()),
            )),
            _ => Ok(()),
        }
    }

    /// Waits for memory; PINGs tell the peer meanwhile that the collector is there.
    async fn take_memory(&mut self, bytes: usize) -> Result<(), End> {
        let common = self.common.clone();
        let taking = common.memory.take(bytes);
        tokio::pin!(taking);
        loop {
            let part = timeout(LOOK_EVERY, &mut taking).await;
            if let Ok(part) = part {
                self.part = Some(part.ok_or(End::Gone)?);
                return Ok(());
            }
            self.ping_if_due().await?;
        }
    }

    /// Drops the block at the buffer's front, and gives back what it took of the memory of all.
    pub(super) fn drop_front(&mut self, header: &BlockHeader) {
        self.buffer.drain(..header.whole_bytes());
        if self.part.take().is_some() {
            self.buffer.shrink_to(BUFFER);
        }
    }

    /// Begins to send PINGs.
    pub(super) fn begin_pings(&mut self) {
        self.ping_at = Some(TokioInstant::now());
    }

    /// Number of PINGs that were sent.
    pub(super) fn pings(&self) -> u64 {
        self.pings.said()
    }

    /// Sends PING if it is time; returns when the next one will be due.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn ping_if_due(&mut self) -> Result<TokioInstant, End> {
        let now = TokioInstant::now();
        match self.ping_at {
            Some(at) if at > now => Ok(at),
            None => Ok(now + SILENT),
            Some(_) => {
                let ping = self.pings.next();
                self.say(&messages::ping(&ping)).await?;
                let next = TokioInstant::now() + self.pings.pause();
                self.ping_at = Some(next);
                Ok(next)
            }
        }
    }

    /// The host's clock as a PONG measures it, if it does.
    ///
    /// # Errors
    /// It answers no PING.
    pub(super) fn measure(&mut self, pong: &Pong) -> Result<Option<HostClock>, End> {
        self.pings.answered(pong).map_err(End::protocol)
    }

    /// Sends a message; a peer that does not read is gone.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn say(&mut self, message: &[u8]) -> Result<(), End> {
        let say = async {
            self.bytes.write_all(message).await?;
            self.bytes.flush().await
        };
        match timeout(SILENT, say).await {
            Ok(sent) => sent.map_err(End::from),
            Err(_) => Err(End::Gone),
        }
    }

    /// Closes our direction, after BYE.
    pub(super) async fn shutdown(&mut self) {
        let _ = timeout(SILENT, self.bytes.shutdown()).await;
    }

    /// Sends a last message and closes once the peer has heard it.
    pub(super) async fn close(self, last: &[u8]) {
        say_and_close(self.bytes, last).await;
    }
}
