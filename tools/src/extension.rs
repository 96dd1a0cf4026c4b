//! What needs many other crates, and so another binary: formats with Arrow, stores of objects that are
//! no directories, and SQL. `ringmark-fleet` has all but SQL, `ringmark-query` has all; `ringmark` goes on as that command,
//! found as git finds its own.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use clap::builder::{PathBufValueParser, TypedValueParser};
use ringmark_collector::store::objects::ObjectStore;
use ringmark_decoder::store::ObjectSource;

use crate::output::answer::{Answer, Format};
use crate::output::{Exit, Failure};

/// The command that has formats and stores, and its directory in the repository.
const FLEET: (&str, &str) = ("ringmark-fleet", "fleet");
/// The same for SQL.
pub(crate) const QUERY: (&str, &str) = ("ringmark-query", "query");
/// The schemes of addresses of stores that need it.
const SCHEMES: [&str; 3] = ["s3://", "az://", "gs://"];

/// The extension of this binary.
static INSTALLED: OnceLock<Box<dyn Extension>> = OnceLock::new();

/// What a binary can do beyond the command `ringmark`.
pub trait Extension: Send + Sync {
    /// Runs a command line, given without the name of the program, whose output needs it; returns an exit code.
    fn run(&self, words: Vec<OsString>) -> u8;

    /// Answers a query; returns an exit code. `None`: this binary has no SQL.
    fn query(&self, _question: &Question) -> Option<u8> {
        None
    }

    /// The store at an address such as `s3://BUCKET/PREFIX`, for a reader.
    ///
    /// # Errors
    /// The address is wrong, or settings are.
    fn source(&self, url: &str) -> io::Result<Box<dyn ObjectSource>>;

    /// The same for a collector.
    ///
    /// # Errors
    /// As [`Self::source`].
    fn place(&self, url: &str) -> io::Result<Arc<dyn ObjectStore>>;
}

/// A question in SQL.
#[derive(Debug)]
pub struct Question {
    /// The question.
    pub sql: String,
    /// A store, by its address or path, or the path of a trace file.
    pub store: String,
    /// Where the tables of the store are; `None`: in it.
    pub tables: Option<String>,
    /// Bytes of memory for sorted and grouped rows.
    pub memory: u64,
    pub(crate) format: Format,
}

impl Question {
    /// What prints the answer. `columns`: the name of each, and whether it has numbers.
    #[must_use]
    pub fn answer(&self, columns: Vec<(String, bool)>) -> Answer {
        Answer::new(self.format, columns)
    }
}

/// Makes the extension that of this binary.
pub(crate) fn install(extension: Option<Box<dyn Extension>>) {
    if let Some(extension) = extension {
        let _ = INSTALLED.set(extension);
    }
}

/// The address of a store that needs the extension; `None`: it is a path.
#[must_use]
pub fn store_url(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    let is_one = SCHEMES.iter().any(|scheme| text.starts_with(scheme));
    is_one.then_some(text)
}

/// A path, or that of `file:///PATH`.
pub(crate) fn local_path(place: PathBuf) -> PathBuf {
    let bytes = place.as_os_str().as_bytes().strip_prefix(b"file://");
    let path = bytes.filter(|path| path.starts_with(b"/"));
    path.map_or_else(|| place.clone(), |path| OsStr::from_bytes(path).into())
}

/// Reads a path, or that of `file:///PATH`, from a command line.
pub(crate) fn place_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(local_path)
}

/// The extension. Where this binary has none, goes on as `ringmark-fleet` with the same command line.
///
/// # Errors
/// There is no `ringmark-fleet`. `wanted` is what needs it.
pub(crate) fn required(wanted: &str) -> Result<&'static dyn Extension, Failure> {
    match INSTALLED.get() {
        Some(extension) => Ok(&**extension),
        None => Err(go_on(FLEET, wanted, words())),
    }
}

/// Has the extension write the output. `wanted` is what needs it; `named`: the file to write, if the
/// command line names none. One that is there is set aside when the new one is whole.
///
/// # Errors
/// As [`required`].
pub(crate) fn write(wanted: &str, named: Option<&Path>) -> anyhow::Result<Exit> {
    let Some(extension) = INSTALLED.get() else {
        return Err(go_on(FLEET, wanted, words()).into());
    };
    let mut words = words();
    if let Some(path) = named {
        // After `--` there are files alone.
        let end = words.iter().position(|word| word == "--");
        let added = ["-o".into(), path.into(), "--set-aside".into()];
        let _ = words.splice(end.map_or(words.len()..words.len(), |end| end..end), added);
    }
    Ok(Exit(extension.run(words)))
}

/// Answers a query; `None`: this binary cannot.
pub(crate) fn query(question: &Question) -> Option<u8> {
    INSTALLED.get()?.query(question)
}

/// The command line without the name of the program.
pub(crate) fn words() -> Vec<OsString> {
    env::args_os().skip(1).collect()
}

/// Goes on as another command: the one next to this program, or else that on `PATH`. Returns only if there
/// is none.
pub(crate) fn go_on(
    (name, directory): (&str, &str),
    wanted: &str,
    words: Vec<OsString>,
) -> Failure {
    let beside = env::current_exe().map(|exe| exe.with_file_name(name));
    let beside = beside.ok().filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from(name));
    let error = Command::new(&program).args(words).exec();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "{wanted} needs {name}, found neither next to ringmark nor on PATH; in the repository \
             'cargo install --locked --path {directory}' installs it"
        )),
        _ => Failure::no_target(format!("{}: {error}", program.display())),
    }
}
