//! A connection's buffer: filled with whole blocks, within bounds of memory and time.

use std::time::{Duration, Instant};

use ringmark_format::block::BlockHeader;
use ringmark_format::stream::refusal;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant as TokioInstant, timeout, timeout_at};

use super::{BUFFER, End, Peer, SILENT, wrong};
use crate::block;

/// How often a connection that waits looks around.
const LOOK_EVERY: Duration = Duration::from_millis(250);

impl Peer {
    pub(super) async fn next_header(
        &mut self,
        deadline: TokioInstant,
    ) -> Result<Option<BlockHeader>, End> {
        loop {
            if let Some(header) = block::header(&self.buffer).map_err(wrong)? {
                return Ok(Some(header));
            }
            match timeout_at(deadline, self.bytes.read_buf(&mut self.buffer)).await {
                Ok(Ok(0)) | Err(_) => return Ok(None),
                Ok(read) => drop(read?),
            }
        }
    }

    /// Reads until `bytes` are in the buffer. What is more than a connection's own memory is taken
    /// from that of all.
    pub(super) async fn fill(&mut self, bytes: usize, within: Duration) -> Result<(), End> {
        if bytes > BUFFER && self.memory.is_none() {
            self.take_memory(bytes).await?;
        }
        let begun = Instant::now();
        let mut heard_at = begun;
        self.buffer
            .reserve_exact(bytes.saturating_sub(self.buffer.len()));
        while self.buffer.len() < bytes {
            let left = within.saturating_sub(begun.elapsed());
            let read = self.bytes.read_buf(&mut self.buffer);
            match timeout(left.min(LOOK_EVERY), read).await {
                Ok(Ok(0)) => return Err(End::Gone),
                Ok(read) => {
                    let _ = read?;
                    heard_at = Instant::now();
                }
                Err(_) => {}
            }
            if self.buffer.len() < bytes {
                let is_silent = heard_at.elapsed() >= SILENT;
                self.check_pace(bytes, begun, is_silent || begun.elapsed() >= within)?;
                self.ping_if_due().await?;
            }
        }
        Ok(())
    }

    /// A block that comes too slowly is not waited for.
    fn check_pace(&self, bytes: usize, begun: Instant, is_over: bool) -> Result<(), End> {
        let (there, after) = (self.buffer.len(), begun.elapsed());
        let text = || format!("{there} of {bytes} bytes after {} s", after.as_secs());
        if is_over {
            return Err(wrong(text()));
        }
        match &self.memory {
            Some(part) if self.common.memory.is_wanted_back(part) => Err(End::Refused(
                refusal::BUSY,
                format!("{}, and others wait for the memory", text()),
            )),
            _ => Ok(()),
        }
    }

    /// Waits for memory, and says meanwhile that we are here.
    async fn take_memory(&mut self, bytes: usize) -> Result<(), End> {
        let common = self.common.clone();
        let taking = common.memory.take(bytes);
        tokio::pin!(taking);
        loop {
            let part = timeout(LOOK_EVERY, &mut taking).await;
            if let Ok(part) = part {
                self.memory = Some(part.ok_or(End::Gone)?);
                return Ok(());
            }
            self.ping_if_due().await?;
        }
    }

    pub(super) fn drop_front(&mut self, header: &BlockHeader) {
        self.buffer.drain(..header.whole_bytes());
        if self.memory.take().is_some() {
            self.buffer.shrink_to(BUFFER);
        }
    }
}
