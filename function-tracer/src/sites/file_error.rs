//! Why the patch sites of a file cannot be found.

use std::io;
use std::sync::Arc;

/// Why the patch sites of a file cannot be found.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileError {
    /// The file cannot be opened or read.
    #[error(transparent)]
    Read(Arc<io::Error>),
    /// The file is no ELF program or shared object, or a damaged one.
    #[error(transparent)]
    Elf(#[from] object::Error),
    /// The file is for another processor than the one whose patch sites are known.
    #[error(
        "built for {found}, expected x86-64: the functions of no other processor can be traced"
    )]
    OtherProcessor {
        /// The name of its processor, or the number that its header states.
        found: String,
    },
    /// The file's segments are too far apart to be laid out in memory.
    #[error("its segments span {bytes} bytes")]
    TooLarge {
        /// Bytes from the first segment to the end of the last.
        bytes: u64,
    },
    /// The file's name no longer leads to the file that runs.
    #[error("replaced or removed since it was loaded")]
    Replaced,
    /// Program headers or build id in memory are not those of the file.
    #[error("not the file that was loaded")]
    OtherFile,
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        Self::Read(Arc::new(error))
    }
}
