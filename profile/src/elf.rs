//! Files of ELF that are read section by section, and the file with the symbols of a stripped one: by its build id, where
//! distributions install it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{Endianness, Object, ReadCache};

/// A file of ELF that is read section by section.
pub(crate) type Elf<'data> = ElfFile<'data, FileHeader64<Endianness>, &'data ReadCache<File>>;

/// Opens a file of the process for reading. Its user may have put something else in its place: a pipe would be waited for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("found something else, expected a file")),
    }
}

/// Opens the file with the symbols of `elf`, which is at `path`; `None`: there is none of this build.
pub(crate) fn open_debug_file(path: &Path, elf: &Elf<'_>) -> Option<File> {
    let build_id = elf.build_id().ok().flatten()?;
    let [first, rest @ ..] = build_id else {
        return None;
    };
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    // A process in a container has files of its own.
    let of_process = path.ancestors().filter(|path| path.ends_with("root"));
    let roots = of_process.last().into_iter().chain([Path::new("/")]);
    roots
        .map(|root| root.join(format!("usr/lib/debug/.build-id/{first:02x}/{rest}.debug")))
        .find_map(|place| {
            let file = open(&place).ok()?;
            let cache = ReadCache::new(file.try_clone().ok()?);
            let debug = Elf::parse(&cache).ok()?;
            (debug.build_id().ok().flatten() == Some(build_id)).then_some(file)
        })
}
