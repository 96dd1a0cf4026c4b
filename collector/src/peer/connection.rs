//! The two directions of a connection: whole blocks in, and messages out, PINGs among them.
//!
//! Small blocks fit the connection's own buffer. A larger one needs memory from the pool of all
//! connections, and must come fast enough to deserve it. While a block is waited for, PINGs go on:
//! the peer must not take the collector for gone.

use std::future::ready;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::BlockAt;
use ringmark_format::stream::{HostClock, Pong, SILENT_MS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant as TokioInstant, sleep_until, timeout, timeout_at};

use crate::block_memory::TakenMemory;
use crate::connection_context::ConnectionContext;
use crate::connection_end::{ConnectionEnd, Departure};
use crate::host_clock::Pings;
use crate::host_shares::HostShare;
use crate::incoming_block;
use crate::listen::{Bytes, say_and_close};
use crate::messages;
use crate::reason::Reason;

/// Silence after which a peer counts as gone.
pub(super) const SILENT: Duration = Duration::from_millis(SILENT_MS as u64);
/// Size of a connection's own buffer in bytes; a larger block takes memory from the pool.
pub(super) const BUFFER: usize = 16 << 10;
/// What is read at once while it is not known how large the next block is.
const READ: usize = 4 << 10;
/// Its size while nothing comes: thousands of connections wait most of the time.
const QUIET_BUFFER: usize = 512;
/// How often a connection that waits for bytes or memory checks its bounds and PINGs.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Least speed of a large block, in bytes per second: no peer holds memory for ever.
const SLOWEST: u64 = 64 << 10;

/// A connection: its buffer and its PINGs.
pub(super) struct Connection {
    bytes: Box<dyn Bytes>,
    context: Arc<ConnectionContext>,
    buffer: Vec<u8>,
    /// What its host may take; `None`: the greeting is not over.
    share: Option<Arc<HostShare>>,
    /// Memory from the pool, for a block larger than [`BUFFER`].
    taken: Option<TakenMemory>,
    pings: Pings,
    /// When the next PING is due; `None`: the greeting is not over.
    ping_at: Option<TokioInstant>,
}

impl Connection {
    /// A connection over which nothing was read yet.
    pub(super) fn new(bytes: Box<dyn Bytes>, context: Arc<ConnectionContext>) -> Self {
        Self {
            bytes,
            context,
            buffer: Vec::new(),
            share: None,
            taken: None,
            pings: Pings::default(),
            ping_at: None,
        }
    }

    /// Waits for more bytes, no longer than until `until`; returns whether any came.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn read_until(&mut self, until: TokioInstant) -> Result<bool, ConnectionEnd> {
        self.buffer
            .reserve_exact(READ.saturating_sub(self.buffer.len()));
        let at_once = tokio::select! {
            biased;
            read = self.bytes.read_buf(&mut self.buffer) => Some(read),
            () = ready(()) => None,
        };
        match at_once {
            Some(Ok(0)) => return Err(ConnectionEnd::Gone(Departure::Closed)),
            Some(read) => return Ok(read? > 0),
            None => self.shrink_buffer(),
        }
        self.read_what_fits(until).await
    }

    /// Gives the memory of the buffer back that is not used.
    fn shrink_buffer(&mut self) {
        if self.buffer.len() < QUIET_BUFFER {
            // Not the end of the large piece: that would stay between others.
            let mut small = Vec::with_capacity(QUIET_BUFFER);
            small.extend_from_slice(&self.buffer);
            self.buffer = small;
        }
    }

    /// Waits for more bytes that the buffer has room for; otherwise as [`Self::read_until`].
    async fn read_what_fits(&mut self, until: TokioInstant) -> Result<bool, ConnectionEnd> {
        match timeout_at(until, self.bytes.read_buf(&mut self.buffer)).await {
            Ok(Ok(0)) => Err(ConnectionEnd::Gone(Departure::Closed)),
            Ok(read) => Ok(read? > 0),
            Err(_) => Ok(false),
        }
    }

    /// The header at the buffer's front; `None`: not all of it is there.
    ///
    /// # Errors
    /// The bytes there are no header of a block.
    pub(super) fn header(&self) -> Result<Option<BlockHeader>, ConnectionEnd> {
        incoming_block::header(&self.buffer).map_err(ConnectionEnd::protocol)
    }

    /// Waits for the header of a block, no longer than until `deadline`.
    ///
    /// # Errors
    /// The bytes are no header of a block, or too few came.
    pub(super) async fn next_header(
        &mut self,
        deadline: TokioInstant,
    ) -> Result<BlockHeader, ConnectionEnd> {
        loop {
            if let Some(header) = self.header()? {
                return Ok(header);
            }
            if !self.read_until(deadline).await? {
                return Err(ConnectionEnd::Gone(Departure::Silent));
            }
        }
    }

    /// The block at the buffer's front, after [`Connection::fill_block`].
    pub(super) fn block(&self, header: &BlockHeader) -> BlockAt<'_> {
        incoming_block::whole(header, &self.buffer)
    }

    /// The checked content of the block at the buffer's front.
    ///
    /// # Errors
    /// The content's checksum is wrong.
    pub(super) fn content(&self, header: &BlockHeader) -> Result<&[u8], ConnectionEnd> {
        self.block(header)
            .content()
            .map_err(ConnectionEnd::protocol)
    }

    /// Reads the block at the buffer's front to its end, within a time that its size bounds.
    ///
    /// # Errors
    /// The peer is gone, or too slow.
    pub(super) async fn fill_block(&mut self, header: &BlockHeader) -> Result<(), ConnectionEnd> {
        let whole = header.whole_bytes();
        if self.buffer.len() >= whole {
            return Ok(());
        }
        let seconds = whole as u64 / SLOWEST;
        self.fill(whole, SILENT + Duration::from_secs(seconds))
            .await
    }

    /// Reads until `bytes` are in the buffer, no longer than `within`. More than the buffer holds
    /// needs memory from the pool.
    ///
    /// # Errors
    /// The peer is gone, or too slow.
    pub(super) async fn fill(
        &mut self,
        bytes: usize,
        within: Duration,
    ) -> Result<(), ConnectionEnd> {
        if bytes > BUFFER && self.taken.is_none() {
            self.take_memory(bytes).await?;
        }
        let begun = Instant::now();
        let mut heard_at = begun;
        self.buffer
            .reserve_exact(bytes.saturating_sub(self.buffer.len()));
        while self.buffer.len() < bytes {
            let left = within.saturating_sub(begun.elapsed());
            let until = TokioInstant::now() + left.min(LOOK_EVERY);
            if self.read_what_fits(until).await? {
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

    /// Refuses a block that is over its time, or that holds memory for which others wait.
    fn check_pace(&self, bytes: usize, begun: Instant, is_over: bool) -> Result<(), ConnectionEnd> {
        let (there, after) = (self.buffer.len(), begun.elapsed());
        let text = || format!("{there} of {bytes} bytes after {} s", after.as_secs());
        if is_over {
            return Err(ConnectionEnd::protocol(text()));
        }
        match &self.taken {
            Some(taken) if self.context.memory.is_wanted_back(taken) => {
                Err(ConnectionEnd::refused(
                    Reason::SlowBlock,
                    format!("{}, and others wait for the memory", text()),
                ))
            }
            _ => Ok(()),
        }
    }

    /// Waits for memory from the pool, and sends PINGs while it waits.
    async fn take_memory(&mut self, bytes: usize) -> Result<(), ConnectionEnd> {
        let context = self.context.clone();
        let share = self
            .share
            .clone()
            .ok_or(ConnectionEnd::Gone(Departure::Closed))?;
        let taking = context.memory.take(&share, bytes);
        tokio::pin!(taking);
        loop {
            if let Ok(taken) = timeout(LOOK_EVERY, &mut taking).await {
                self.taken = Some(taken.ok_or(ConnectionEnd::Gone(Departure::Closed))?);
                return Ok(());
            }
            self.ping_if_due().await?;
        }
    }

    /// Drops the block at the buffer's front, and gives its memory back to the pool.
    pub(super) fn drop_front(&mut self, header: &BlockHeader) {
        self.buffer.drain(..header.whole_bytes());
        if self.taken.take().is_some() {
            self.buffer.shrink_to(BUFFER);
        }
    }

    /// Begins the conversation after the greeting: its host is known, and PINGs are sent.
    pub(super) fn begin(&mut self, share: Arc<HostShare>) {
        self.share = Some(share);
        self.ping_at = Some(TokioInstant::now());
    }

    /// Waits as long as the host must after it has sent these bytes.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn keep_pace(&mut self, bytes: u64) -> Result<(), ConnectionEnd> {
        let wait = self.share.as_ref().map(|share| share.pay(bytes));
        let until = TokioInstant::now() + wait.unwrap_or_default();
        while TokioInstant::now() < until && !*self.context.draining.borrow() {
            let look_at = TokioInstant::now() + LOOK_EVERY;
            let ping_at = self.ping_if_due().await?;
            sleep_until(until.min(ping_at).min(look_at)).await;
        }
        Ok(())
    }

    /// Number of PINGs that were sent.
    pub(super) fn pings(&self) -> u64 {
        self.pings.sent()
    }

    /// Sends a PING if one is due; returns when the next one will be.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn ping_if_due(&mut self) -> Result<TokioInstant, ConnectionEnd> {
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

    /// The host's clock as this PONG measures it; `None`: it came too late to measure anything.
    ///
    /// # Errors
    /// It answers no PING of ours.
    pub(super) fn measure(&mut self, pong: &Pong) -> Result<Option<HostClock>, ConnectionEnd> {
        self.pings.answered(pong).map_err(ConnectionEnd::protocol)
    }

    /// Sends a message. A peer that does not read it in time counts as gone.
    ///
    /// # Errors
    /// The peer is gone.
    pub(super) async fn say(&mut self, message: &[u8]) -> Result<(), ConnectionEnd> {
        let say = async {
            self.bytes.write_all(message).await?;
            self.bytes.flush().await
        };
        match timeout(SILENT, say).await {
            Ok(sent) => sent.map_err(ConnectionEnd::from),
            Err(_) => Err(ConnectionEnd::Gone(Departure::Silent)),
        }
    }

    /// Closes our direction, in answer to BYE.
    pub(super) async fn shutdown(&mut self) {
        let _ = timeout(SILENT, self.bytes.shutdown()).await;
    }

    /// Sends a last message and closes once the peer has heard it.
    pub(super) async fn close(self, last: &[u8]) {
        say_and_close(self.bytes, last).await;
    }
}
