//! Where trace files go: `-`, the default file, the file that was there before.

use std::fs::{self, File};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use ringmark_decoder::store::Opened;
use ringmark_format::block::BLOCK_MAGIC;
use ringmark_format::session::RING_FILE_MAGIC;
use ringmark_reader::Destination;
use rustix::fs::{Access, access};

use crate::extension::{self, store_url};
use crate::{Exit, Failure, note};

/// The trace file that commands read and write when none is named.
pub const DEFAULT_FILE: &str = "ringmark.rmk";

/// Whether a path means standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The place for a new trace file. A file that is there becomes `.old` when the first block of the
/// new one is written, so a recording of nothing replaces nothing.
///
/// # Errors
/// It is a directory, a terminal, or a place where nothing can be written.
pub fn destination(path: &Path) -> anyhow::Result<Destination> {
    if is_standard(path) {
        if io::stdout().is_terminal() {
            let text = "standard output is a terminal, expected a file or a pipe for the trace";
            return Err(Failure::usage(text).into());
        }
        return Ok(Destination::Stdout);
    }
    let shown = path.display();
    let about = fs::symlink_metadata(path);
    match &about {
        Ok(about) if about.is_dir() => {
            return Err(Failure::usage(format!(
                "{shown}: is a directory, expected a trace file to write"
            ))
            .into());
        }
        // A device, a pipe, a link: written as it is.
        Ok(about) if !about.is_file() => return Ok(Destination::File(path.to_owned())),
        _ => {}
    }
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
    let parent = parent.unwrap_or(Path::new("."));
    if !parent.is_dir() {
        return Err(Failure::usage(format!(
            "{shown}: no directory {} to write the trace file to",
            parent.display()
        ))
        .into());
    }
    let may_write = Access::WRITE_OK | Access::EXEC_OK;
    access(parent, may_write).map_err(|error| {
        let error = io::Error::from(error);
        Failure::usage(format!("{shown}: create: {error}"))
    })?;
    Ok(Destination::Replaced(path.to_owned()))
}

/// What becomes of a file that is written again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Former {
    /// It is replaced: the user named it.
    Replaced,
    /// It becomes FILE.old: the user may not know that it is there.
    SetAside,
}

impl Former {
    /// Sets the file aside that is to be replaced. Returns its new path, if there was one.
    ///
    /// # Errors
    /// Those of the file system.
    fn set_aside(self, path: &Path) -> io::Result<Option<PathBuf>> {
        let mut old = path.as_os_str().to_owned();
        old.push(".old");
        match self {
            Self::SetAside if path.symlink_metadata().is_ok() => {
                fs::rename(path, &old).map(|()| Some(old.into()))
            }
            _ => Ok(None),
        }
    }
}

/// Checks that what is written does not take the place of a trace: it may be the only one, and the input.
///
/// # Errors
/// There is a trace file, or the ring file of a session.
pub fn require_no_trace(path: &Path) -> Result<(), Failure> {
    let is_plain = fs::metadata(path).is_ok_and(|about| about.is_file());
    let mut front = Vec::new();
    if is_plain && let Ok(file) = File::open(path) {
        // What cannot be read is no input either.
        let _ = file
            .take(RING_FILE_MAGIC.len() as u64)
            .read_to_end(&mut front);
    }
    if !front.starts_with(&BLOCK_MAGIC) && !front.starts_with(&RING_FILE_MAGIC) {
        return Ok(());
    }
    let text = format!(
        "{}: is a trace file, which stays as it is; expected another name for what is written",
        path.display()
    );
    Err(Failure::usage(text))
}

/// Says where a file is that was in the way.
pub fn tell_set_aside(path: &Path, old: &Path) {
    let (path, old) = (path.display(), old.display());
    note(&format!("{path}: was there, and is {old} now"));
}

/// Writes a file next to `path`, which takes its place when it is whole. Returns where the former one is,
/// if it was set aside.
///
/// # Errors
/// It is a directory or a trace file, or cannot be written.
pub fn replace<T>(
    path: &Path,
    former: Former,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>,
) -> anyhow::Result<(T, Option<PathBuf>)> {
    let failed = |error: io::Error| Failure {
        exit: Exit::LOST,
        text: format!("{}: {error}", path.display()),
    };
    if path.is_dir() {
        let text = format!(
            "{}: is a directory, expected a file to write",
            path.display()
        );
        return Err(Failure::usage(text).into());
    }
    if former == Former::Replaced {
        require_no_trace(path)?;
    }
    // A device or a pipe is written as it is.
    let is_plain = fs::metadata(path).map_or(true, |about| about.is_file());
    let mut name = path.as_os_str().to_owned();
    if is_plain {
        name.push(".part");
    }
    let part = PathBuf::from(name);
    let file = File::create(&part)
        .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
    let mut out = BufWriter::new(file);
    let written = write(&mut out).and_then(|done| out.flush().map(|()| done));
    let done = written.and_then(|done| match is_plain {
        true => {
            let old = former.set_aside(path)?;
            fs::rename(&part, path).map(|()| (done, old))
        }
        false => Ok((done, None)),
    });
    if done.is_err() && is_plain {
        // What is there is of no use.
        let _ = fs::remove_file(&part);
    }
    Ok(done.map_err(failed)?)
}

/// Opens an input for reading.
///
/// # Errors
/// It is not there, or nothing that can be read as a trace file.
pub fn open(path: &Path) -> Result<Opened, Failure> {
    if let Some(url) = store_url(path) {
        let source = extension::required(url)?.source(url);
        let source = source.map_err(|error| Failure::unreadable(format!("{url}: {error}")))?;
        return Ok(Opened::Objects(source));
    }
    if is_standard(path) {
        if io::stdin().is_terminal() {
            let text = "standard input is a terminal, expected a trace file";
            return Err(Failure::usage(text));
        }
        let name = "standard input".to_owned();
        return Ok(Opened::Stream(name, Box::new(io::stdin())));
    }
    let name = path.display().to_string();
    let unreadable = |what: String| Failure::unreadable(format!("{name}: {what}"));
    let about = fs::metadata(path).map_err(|error| unreadable(cannot_open(path, &error)))?;
    if about.is_dir() {
        return Err(unreadable(
            "is a directory, expected a trace file".to_owned(),
        ));
    }
    if about.file_type().is_socket() {
        return Err(unreadable("is a socket, expected a trace file".to_owned()));
    }
    if about.file_type().is_char_device() {
        return Err(unreadable("is a device, expected a trace file".to_owned()));
    }
    let file = fs::File::open(path).map_err(|error| unreadable(cannot_open(path, &error)))?;
    Ok(match about.is_file() {
        true => Opened::File(path.to_owned(), file),
        false => Opened::Stream(name, Box::new(file)),
    })
}

fn cannot_open(path: &Path, error: &io::Error) -> String {
    let hint = if error.kind() == io::ErrorKind::NotFound && path.as_os_str() == DEFAULT_FILE {
        "; name a trace file, or make one with 'ringmark record -- CMD'"
    } else {
        ""
    };
    format!("cannot be opened: {error}{hint}")
}
