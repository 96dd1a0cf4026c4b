//! A disk before and after a loss of power: what a program did to its files, call by call, as a shim logs it, and what
//! of that a disk may hold at any moment.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::preload_shim::Call;
use crate::random::Random;

const SECTOR: usize = 512;

/// Names and files, as the running system sees them or as they are on the disk. A directory is a name of file 0.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disk {
    /// Each name's file.
    pub names: BTreeMap<String, u32>,
    /// Each file's content.
    pub files: HashMap<u32, Vec<u8>>,
}

impl Disk {
    /// The files that can be found by their names.
    pub fn reachable(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let found = self
            .names
            .iter()
            .filter(|(name, file)| **file != 0 && self.has_way_to(name));
        found.filter_map(|(name, file)| Some((name.as_str(), self.files.get(file)?.as_slice())))
    }

    /// Whether the directories of a relative name are there; those of others always were.
    fn has_way_to(&self, name: &str) -> bool {
        let mut above = Path::new(name).ancestors().skip(1);
        name.starts_with('/')
            || above.all(|path| {
                let path = path.to_str().unwrap_or_default();
                path.is_empty() || self.names.contains_key(path)
            })
    }
}

/// Both at once.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// As the running system sees it.
    pub now: Disk,
    /// What is on the disk whatever happens.
    pub safe: Disk,
}

impl Moment {
    /// After this call.
    ///
    /// # Panics
    /// When the log contradicts itself.
    pub fn apply(&mut self, call: &Call) {
        let Self { now, safe } = self;
        let name = || String::from_utf8_lossy(&call.data).into_owned();
        match call.call() {
            "open" => {
                let _ = now.names.insert(name(), call.file);
                let _ = now.files.insert(call.file, Vec::new());
                let _ = safe.files.remove(&call.file);
            }
            "mkdir" => drop(now.names.insert(name(), 0)),
            "write" => {
                let file = now.files.get_mut(&call.file).expect("an open file");
                file.resize(call.offset as usize, 0);
                file.extend_from_slice(&call.data);
            }
            "ftruncate" => {
                let file = now.files.get_mut(&call.file).expect("an open file");
                file.truncate(call.offset as usize);
            }
            "fdatasync" => {
                let content = now.files[&call.file].clone();
                let _ = safe.files.insert(call.file, content);
            }
            "rename" => {
                let names = name();
                let (from, to) = names.split_once('\0').expect("two names");
                let file = now.names.remove(from).expect("a file");
                let _ = now.names.insert(to.to_owned(), file);
            }
            "unlink" => drop(now.names.remove(&name())),
            // The entry of the directory that is named; whole paths are in the only one there is.
            "fsync" => {
                let directory = name();
                let is_in = |path: &String| {
                    path.starts_with('/') || Path::new(path).parent() == Some(Path::new(&directory))
                };
                safe.names.retain(|path, _| !is_in(path));
                let new = now.names.iter().filter(|(path, _)| is_in(path));
                safe.names
                    .extend(new.map(|(path, file)| (path.clone(), *file)));
            }
            "said" => {}
            other => panic!("{other}"),
        }
    }

    /// A disk that may be found: of what is not safe some names, some sectors, some lengths.
    #[must_use]
    pub fn by_chance(&self, random: &mut Random) -> Disk {
        let mut found = self.safe.clone();
        for (name, file) in &self.now.names {
            if random.below(2) == 0 {
                let _ = found.names.insert(name.clone(), *file);
            }
        }
        let gone = |name: &String| !self.now.names.contains_key(name);
        let gone: Vec<_> = found
            .names
            .keys()
            .filter(|name| gone(name))
            .cloned()
            .collect();
        for name in gone {
            if random.below(2) == 0 {
                let _ = found.names.remove(&name);
            }
        }
        let none = Vec::new();
        for (file, now) in &self.now.files {
            let safe = self.safe.files.get(file).unwrap_or(&none);
            let content = match random.below(3) {
                _ if now.len() < safe.len() => [safe, now][random.below(2) as usize].clone(),
                0 => safe.clone(),
                1 => now.clone(),
                _ => {
                    let more = random.below((now.len() - safe.len()) as u64 + 1) as usize;
                    let bytes = [now.len(), safe.len() + more][random.below(2) as usize];
                    image(safe, now, bytes, |_| {
                        [Fate::New, Fate::Zero, Fate::Old][random.below(3) as usize]
                    })
                }
            };
            let _ = found.files.insert(*file, content);
        }
        found
    }
}

/// What became of a sector that was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was written.
    New,
    /// It was not, and reads as zeros.
    Zero,
    /// What lay there before: of a file that grew, whatever the disk held.
    Old,
}

/// Sectors of a file that grew from `safe` to `now` which may not be on the disk.
#[must_use]
pub fn unsafe_sectors(safe: &[u8], now: &[u8]) -> usize {
    now.len().div_ceil(SECTOR) - safe.len() / SECTOR
}

/// The place after this number of sectors that were not synced.
#[must_use]
pub fn behind(safe: &[u8], now: &[u8], sectors: usize) -> usize {
    now.len().min(safe.len() + sectors * SECTOR)
}

/// The file with its unsynced sectors as `fate` says, and at most `bytes` long.
#[must_use]
pub fn image(
    safe: &[u8],
    now: &[u8],
    bytes: usize,
    mut fate: impl FnMut(usize) -> Fate,
) -> Vec<u8> {
    let mut image = now[..bytes].to_vec();
    let first = safe.len() / SECTOR;
    for sector in first..bytes.div_ceil(SECTOR) {
        let (from, to) = (sector * SECTOR, bytes.min((sector + 1) * SECTOR));
        let kept = safe.len().clamp(from, to);
        // A sector is written as a whole: what is synced in it stays.
        match fate(sector - first) {
            Fate::New => {}
            Fate::Zero => image[kept..to].fill(0),
            Fate::Old => {
                let old: Vec<u8> = now
                    .iter()
                    .cycle()
                    .skip(from / 2)
                    .take(to - kept)
                    .copied()
                    .collect();
                image[kept..to].copy_from_slice(&old);
            }
        }
    }
    image
}
