//! The process that is looked at, as `/proc` shows it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;

use rustix::fs::{AtFlags, Dir, Mode, OFlags, openat, readlinkat, statat};

use crate::error::ProfileError;

/// A process. All its files are opened below one descriptor, so another process that gets its number later is never
/// taken for it.
#[derive(Debug)]
pub(crate) struct Target {
    pid: u32,
    directory: OwnedFd,
    /// Its memory; `None`: it may not be read.
    memory: Option<File>,
}

impl Target {
    /// Opens the files of a process.
    ///
    /// # Errors
    /// There is no such process.
    pub(crate) fn open(pid: u32) -> Result<Self, ProfileError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(format!("/proc/{pid}"), flags, Mode::empty());
        let directory = directory.map_err(|error| ProfileError::NoProcess {
            pid,
            error: error.into(),
        })?;
        let mut target = Self {
            pid,
            directory,
            memory: None,
        };
        target.open_memory();
        Ok(target)
    }

    /// Opens its memory again: a process that has executed another program has another one.
    pub(crate) fn open_memory(&mut self) {
        self.memory = self.file("mem").ok();
    }

    /// Whether it has memory: it has not ended.
    pub(crate) fn has_memory(&self) -> bool {
        self.text("maps").is_ok_and(|maps| !maps.is_empty())
    }

    pub(crate) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether its memory may be read.
    pub(crate) const fn can_read_memory(&self) -> bool {
        self.memory.is_some()
    }

    /// Opens one of its files for reading.
    ///
    /// # Errors
    /// It is not there any more, or may not be read.
    pub(crate) fn file(&self, name: &str) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        Ok(openat(&self.directory, name, flags, Mode::empty())?.into())
    }

    /// All of one of its files.
    ///
    /// # Errors
    /// As [`Target::file`]; it is not text.
    pub(crate) fn text(&self, name: &str) -> io::Result<String> {
        let mut text = String::new();
        self.file(name)?.read_to_string(&mut text)?;
        Ok(text)
    }

    /// What one of its links says.
    pub(crate) fn link(&self, name: &str) -> Option<OsString> {
        let found = readlinkat(&self.directory, name, Vec::new()).ok()?;
        Some(OsString::from_vec(found.into_bytes()))
    }

    /// The number of the file that one of its links leads to.
    pub(crate) fn inode(&self, name: &str) -> Option<u64> {
        let about = statat(&self.directory, name, AtFlags::empty()).ok()?;
        Some(about.st_ino)
    }

    /// Its name, or that of one of its threads.
    pub(crate) fn name_of(&self, tid: Option<u32>) -> Option<String> {
        let path = tid.map_or_else(|| "comm".to_owned(), |tid| format!("task/{tid}/comm"));
        let mut bytes = Vec::new();
        self.file(&path).ok()?.read_to_end(&mut bytes).ok()?;
        let name = String::from_utf8_lossy(&bytes);
        Some(name.trim_end_matches('\n').to_owned())
    }

    /// How many threads it has.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn count_threads(&self) -> io::Result<u64> {
        // A directory has a link from itself, one from above, and one from each directory in it.
        let links = statat(&self.directory, "task", AtFlags::empty())?.st_nlink;
        #[allow(clippy::useless_conversion, reason = "it has 32 bits on aarch64")]
        let links = u64::from(links);
        Ok(links.saturating_sub(2))
    }

    /// Numbers of its threads.
    ///
    /// # Errors
    /// It has ended.
    pub(crate) fn threads(&self) -> io::Result<BTreeSet<u32>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let tasks = openat(&self.directory, "task", flags, Mode::empty())?;
        let mut tids = BTreeSet::new();
        for entry in Dir::new(tasks)? {
            let entry = entry?;
            tids.extend(
                entry
                    .file_name()
                    .to_str()
                    .ok()
                    .and_then(|name| name.parse::<u32>().ok()),
            );
        }
        Ok(tids)
    }

    /// By how many ns its `CLOCK_MONOTONIC` is ahead of that outside of time namespaces.
    pub(crate) fn monotonic_ahead_ns(&self) -> i64 {
        let text = self.text("timens_offsets").unwrap_or_default();
        ahead_ns(&text).unwrap_or(0)
    }

    /// Copies memory of the process; returns how many bytes came.
    pub(crate) fn read_memory(&self, address: u64, into: &mut [u8]) -> usize {
        let Some(memory) = &self.memory else {
            return 0;
        };
        let mut done = 0;
        while done < into.len() {
            match memory.read_at(&mut into[done..], address.wrapping_add(done as u64)) {
                Ok(0) | Err(_) => break,
                Ok(came) => done += came,
            }
        }
        done
    }

    /// A word of its memory.
    pub(crate) fn read_u32(&self, address: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        (self.read_memory(address, &mut bytes) == 4).then(|| u32::from_le_bytes(bytes))
    }
}

/// What `timens_offsets` says of `CLOCK_MONOTONIC`, in ns.
fn ahead_ns(text: &str) -> Option<i64> {
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("monotonic"))?;
    let mut numbers = line.split_ascii_whitespace().map(str::parse::<i64>);
    let (seconds, ns) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    seconds.checked_mul(1_000_000_000)?.checked_add(ns)
}

#[cfg(test)]
mod tests {
    use super::ahead_ns;

    #[test]
    fn the_time_of_a_namespace_is_read() {
        let text = "monotonic        -1000     500000000\nboottime           0         0\n";
        assert_eq!(ahead_ns(text), Some(-999_500_000_000));
        assert_eq!(ahead_ns(""), None);
        assert_eq!(ahead_ns("monotonic 99999999999999 0"), None);
    }
}
