//! Which files of a spill's directory a streamer made.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ringmark_format::Uuid;
use ringmark_format::block::BlockHeader;
use ringmark_format::block_at::{self, BlockFault};

use crate::error::{ReaderError, io_at};

/// What a file of a spill is called.
pub(super) fn name(session: Uuid, number: u64) -> String {
    format!("{session}.{number}.rmk")
}

/// The files of a spill in the order of their numbers: those that are called as a streamer calls
/// them, and not otherwise.
pub(super) fn of(directory: &Path) -> Result<Vec<(Uuid, u64, PathBuf)>, ReaderError> {
    let entries = fs::read_dir(directory).map_err(io_at("read", directory))?;
    let parse = |path: PathBuf| {
        let found = path.file_name()?.to_str()?;
        let (session, number) = found.split_once('.')?;
        let number = number.strip_suffix(".rmk")?.parse().ok()?;
        let session = u128::from_str_radix(&session.replace('-', ""), 16).ok()?;
        let session = Uuid(session.to_be_bytes());
        let is_ours = name(session, number) == found && path.symlink_metadata().ok()?.is_file();
        is_ours.then_some((session, number, path))
    };
    let mut found: Vec<_> = entries.flatten().filter_map(|e| parse(e.path())).collect();
    found.sort_by_key(|(session, number, _)| (session.0, *number));
    Ok(found)
}

/// What is wrong with the first block of a file. One that ends within it was being written when its
/// streamer was killed: nothing in it was released.
pub(super) fn begins_with_damage(path: &Path) -> Option<BlockFault> {
    let file = File::open(path).ok()?;
    let mut bytes = vec![0; BlockHeader::BYTES];
    file.read_exact_at(&mut bytes, 0).ok()?;
    let header = match block_at::header(&bytes) {
        Err(fault) => return Some(fault),
        Ok(header) => header?,
    };
    bytes.resize(header.whole_bytes(), 0);
    file.read_exact_at(&mut bytes, 0).ok()?;
    block_at::checked(&bytes).err()
}
