//! Going on as another command: `ringmark` has what most people need, and the others what needs many other crates.
//! `ringmark-stream` has the commands for streams, `ringmark-fleet` those, formats with Arrow and stores of objects that
//! are no directories, `ringmark-query` all that and SQL. They are found as git finds its own.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clap::builder::{PathBufValueParser, TypedValueParser};
use ringmark_decoder::store::ObjectSource;

use crate::answer::{Answer, Format};
use crate::{Exit, Failure, given};

/// The command that has streams, and its directory in the repository.
const STREAM: (&str, &str) = ("ringmark-stream", "stream");
/// The same for formats and stores.
const FLEET: (&str, &str) = ("ringmark-fleet", "fleet");
/// The same for SQL.
pub const QUERY: (&str, &str) = ("ringmark-query", "query");
/// The schemes of addresses of stores that need it.
const SCHEMES: [&str; 2] = ["s3://", "az://"];

/// The extension of this binary.
static INSTALLED: OnceLock<Box<dyn Extension>> = OnceLock::new();

/// What a binary can do beyond the command `ringmark`.
pub trait Extension: Send + Sync {
    /// Runs a command line, given without the name of the program, whose output needs it; returns an exit code.
    fn run(&self, words: Vec<OsString>) -> u8;

    /// Runs a command line of `ringmark-stream`, given without the name of the program; returns an exit code.
    fn stream(&self, words: Vec<OsString>) -> u8;

    /// Answers a query; returns an exit code. `None`: this binary has no SQL.
    fn query(&self, _question: &Question) -> Option<u8> {
        None
    }

    /// The store at an address such as `s3://BUCKET/PREFIX`, for a reader.
    ///
    /// # Errors
    /// The address is wrong, or settings are.
    fn source(&self, url: &str) -> io::Result<Box<dyn ObjectSource>>;
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
    /// How the answer is printed.
    pub format: Format,
}

impl Question {
    /// What prints the answer. `columns`: the name of each, and whether it has numbers.
    #[must_use]
    pub fn answer(&self, columns: Vec<(String, bool)>) -> Answer {
        Answer::new(self.format, columns)
    }
}

/// Makes the extension that of this binary.
pub fn install(extension: Option<Box<dyn Extension>>) {
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
pub fn local_path(place: PathBuf) -> PathBuf {
    let bytes = place.as_os_str().as_bytes().strip_prefix(b"file://");
    let path = bytes.filter(|path| path.starts_with(b"/"));
    path.map_or_else(|| place.clone(), |path| OsStr::from_bytes(path).into())
}

/// Reads a path, or that of `file:///PATH`, from a command line.
pub fn place_parser() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().map(local_path)
}

/// The extension. Where this binary has none, goes on as `ringmark-fleet` with the same command line.
///
/// # Errors
/// There is no `ringmark-fleet`. `wanted` is what needs it.
pub fn required(wanted: &str) -> Result<&'static dyn Extension, Failure> {
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
pub fn write(wanted: &str, named: Option<&Path>) -> anyhow::Result<Exit> {
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

/// Runs a command line of `ringmark-stream`: in this binary if it can, else as that command.
///
/// # Errors
/// It is not installed.
pub fn stream(words: Vec<OsString>) -> anyhow::Result<Exit> {
    match INSTALLED.get() {
        Some(extension) => Ok(Exit(extension.stream(words))),
        None => Err(go_on(STREAM, "this command", words).into()),
    }
}

/// Answers a query; `None`: this binary cannot.
pub fn query(question: &Question) -> Option<u8> {
    INSTALLED.get()?.query(question)
}

/// The command line without the name of the program.
pub fn words() -> Vec<OsString> {
    env::args_os().skip(1).collect()
}

/// Goes on as another command: the one next to this program, or else that on `PATH`. Returns only if there
/// is none.
pub fn go_on((name, directory): (&str, &str), wanted: &str, words: Vec<OsString>) -> Failure {
    let beside = env::current_exe().map(|exe| exe.with_file_name(name));
    let beside = beside.ok().filter(|path| path.is_file());
    let program = beside.unwrap_or_else(|| PathBuf::from(name));
    let mut command = Command::new(&program);
    command.args(words);
    given::pass_on(&mut command, &[]);
    let error = command.exec();
    match error.kind() {
        io::ErrorKind::NotFound => Failure::usage(format!(
            "{wanted} needs {name}, found neither next to ringmark nor on PATH; in the repository \
             'cargo install --locked --path {directory}' installs it"
        )),
        _ => Failure::no_target(format!("{}: {error}", program.display())),
    }
}
