//! Making all processors see what was written into code.

use std::io;

use rustix::io::Errno;
use rustix::thread::{MembarrierCommand, membarrier};

/// Returns when every thread of this process that runs has executed a serializing instruction,
/// and every other one will before its next instruction of the program.
pub(super) fn sync() -> io::Result<()> {
    match membarrier(MembarrierCommand::PrivateExpeditedSyncCore) {
        // A process has to announce it first, anew after exec.
        Err(Errno::PERM) => {
            membarrier(MembarrierCommand::RegisterPrivateExpeditedSyncCore)?;
            membarrier(MembarrierCommand::PrivateExpeditedSyncCore)?;
        }
        result => result?,
    }
    Ok(())
}
