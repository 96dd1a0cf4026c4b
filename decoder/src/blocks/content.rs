//! Where the bytes of a page are: in memory, or in the file that they were read from.
//!
//! A trace file may be larger than the memory. So pages stay in it, and are read again when their
//! records are walked. The file is trusted as little as the first time: a page that cannot be read, or
//! does not begin with the header that it had, has no bytes, and why is kept with the file.
//!
//! Pages in a container are unpacked with it. The containers that were unpacked last are kept, up to
//! 16 MiB in all, since the next pages of their rings follow soon.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use ringmark_format::block::{BlockHeader, kind};
use ringmark_format::block_at;
use ringmark_format::codec::decode;

use crate::blocks::block_reader::Block;

/// Files that are kept open at most; the others are opened for each page. A store may have more files
/// than a process may have descriptors. What has no name in a directory is kept open always.
const OPEN_MAX: usize = 256;
/// Bytes of unpacked containers that are kept for their next page.
const UNPACKED_BYTES_MAX: usize = 16 << 20;

/// Where the bytes of a page are. Inputs that cannot be read twice, and pages that were joined of
/// several copies, are in memory.
#[derive(Debug)]
pub(crate) enum Content {
    Held(Box<[u8]>),
    Stored {
        file: Arc<PageFile>,
        /// Offset in the file: of the bytes, or of the container that they are packed in.
        offset: u64,
        /// Where they begin in the unpacked container; `None`: they are not packed.
        packed_at: Option<u32>,
    },
}

impl Content {
    /// None: of a page that is not walked again.
    pub(crate) fn none() -> Self {
        Self::Held(Box::default())
    }

    /// That of a block. `file`: what it stays in; `None`: it is copied.
    pub(crate) fn of(block: &Block<'_>, file: Option<&Arc<PageFile>>) -> Self {
        let Some(file) = file else {
            return Self::Held(block.content.into());
        };
        let plain = block.offset + BlockHeader::BYTES as u64;
        Self::Stored {
            file: file.clone(),
            offset: block.packed_at.map_or(plain, |_| block.offset),
            packed_at: block.packed_at,
        }
    }

    /// Replaces `bytes` with the `extent` bytes that are here, which begin with `front`. None, if
    /// these are not there any more: that is noted in the file.
    pub(crate) fn load(&self, extent: usize, front: &[u8], bytes: &mut Vec<u8>) {
        match self {
            Self::Held(held) => {
                bytes.clear();
                bytes.extend_from_slice(held);
            }
            Self::Stored {
                file,
                offset,
                packed_at,
            } => {
                bytes.resize(extent, 0);
                let read = match packed_at {
                    None => file.read(*offset, bytes),
                    Some(at) => file.unpack(*offset, *at as usize, bytes),
                };
                let read = match bytes.starts_with(front) {
                    true => read,
                    false => read.and(Err(changed())),
                };
                if let Err(error) = read {
                    bytes.clear();
                    file.note(&error);
                }
            }
        }
    }
}

/// Containers that were unpacked last, of all files that are read together; the newest is the last.
#[derive(Debug, Default)]
pub(crate) struct Unpacked(Mutex<Vec<Container>>);

/// An unpacked container: the number of its file, and its offset there.
#[derive(Debug)]
struct Container {
    file: usize,
    offset: u64,
    bytes: Arc<[u8]>,
}

impl Unpacked {
    fn find(&self, file: usize, offset: u64) -> Option<Arc<[u8]>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept
            .iter()
            .position(|one| (one.file, one.offset) == (file, offset))?;
        let found = kept.remove(place);
        let bytes = found.bytes.clone();
        kept.push(found);
        Some(bytes)
    }

    fn keep(&self, file: usize, offset: u64, bytes: Arc<[u8]>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(Container {
            file,
            offset,
            bytes,
        });
        let mut sum: usize = kept.iter().map(|one| one.bytes.len()).sum();
        while sum > UNPACKED_BYTES_MAX && kept.len() > 1 {
            sum -= kept.remove(0).bytes.len();
        }
    }
}

/// A file that pages are in.
#[derive(Debug)]
pub(crate) struct PageFile {
    number: usize,
    path: PathBuf,
    /// `None`: it is opened by its path when it is read.
    file: Option<File>,
    unpacked: Arc<Unpacked>,
    /// Why pages that were in it could not be read again.
    gone: Mutex<Option<String>>,
}

impl PageFile {
    /// `number`: how many were opened before. `file` may be read from elsewhere too: its position is
    /// not used.
    pub(crate) fn new(path: &Path, file: File, number: usize, unpacked: Arc<Unpacked>) -> Self {
        Self {
            number,
            path: path.to_owned(),
            file: (number < OPEN_MAX || is_nameless(&file)).then_some(file),
            unpacked,
            gone: Mutex::default(),
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        match &self.file {
            Some(file) => file.read_exact_at(bytes, offset),
            None => File::open(&self.path)?.read_exact_at(bytes, offset),
        }
    }

    /// Copies what begins at `at` in the container at `offset`.
    fn unpack(&self, offset: u64, at: usize, bytes: &mut [u8]) -> io::Result<()> {
        let container = match self.unpacked.find(self.number, offset) {
            Some(container) => container,
            None => {
                let container: Arc<[u8]> = self.container(offset)?.into();
                self.unpacked.keep(self.number, offset, container.clone());
                container
            }
        };
        let there = container.get(at..).and_then(|rest| rest.get(..bytes.len()));
        bytes.copy_from_slice(there.ok_or_else(changed)?);
        Ok(())
    }

    fn container(&self, offset: u64) -> io::Result<Vec<u8>> {
        let mut front = [0; BlockHeader::BYTES];
        self.read(offset, &mut front)?;
        let header = block_at::header(&front).ok().flatten();
        let header = header.filter(|header| header.kind == kind::CONTAINER);
        let header = header.ok_or_else(changed)?;
        let mut packed = vec![0; header.stored_bytes as usize];
        self.read(offset + BlockHeader::BYTES as u64, &mut packed)?;
        decode(header.codec, &packed, header.raw_bytes).map_err(|_| changed())
    }

    fn note(&self, error: &io::Error) {
        let mut gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        gone.get_or_insert_with(|| error.to_string());
    }

    /// Its path, and why pages that were in it could not be read again; `None`: all could.
    pub(crate) fn gone(&self) -> Option<(String, String)> {
        let gone = self.gone.lock().unwrap_or_else(PoisonError::into_inner);
        let why = gone.clone()?;
        Some((self.path.display().to_string(), why))
    }
}

/// Whether no path leads to a file, as to a segment that was fetched from a bucket.
fn is_nameless(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.nlink() == 0)
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "was changed while it was read")
}
