//! The shared object that a program is started with, and what it can do there.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_format::tracer_text::RequestLine;
use ringmark_function_tracer::sites::in_file;
use rustix::process::{getegid, geteuid};

use super::options::{CallDetail, FunctionNames};
use super::triggers::Triggers;
use super::untraceable::no_sites;
use crate::output::{Failure, note};

/// Its file name.
pub(crate) const LIBRARY: &str = "libringmark_functions.so";

/// Function tracing of a program that is started.
#[derive(Debug)]
pub(crate) struct Preload {
    library: PathBuf,
    wish: String,
}

/// What `run` and `record -- CMD` say of functions.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Functions")]
pub(crate) struct FunctionOptions {
    /// Trace functions, too: 'graph' for calls and their durations, 'function' for calls and callers,
    /// 'profile' for counts and times kept in the program until it ends
    #[arg(long, value_name = "TRACER", value_parser = ["graph", "function", "profile"])]
    pub(crate) tracer: Option<String>,
    #[command(flatten)]
    names: FunctionNames,
    #[command(flatten)]
    triggers: Triggers,
    #[command(flatten)]
    detail: CallDetail,
}

impl FunctionOptions {
    /// What is to be preloaded, if functions are traced.
    ///
    /// # Errors
    /// The options contradict each other, or the shared object is not there.
    pub(crate) fn preload(&self) -> Result<Option<Preload>, Failure> {
        let Some(tracer) = &self.tracer else {
            if self.names.is_empty() && self.detail.is_empty() && self.triggers.is_empty() {
                return Ok(None);
            }
            return Err(Failure::usage(
                "functions are named, but no tracer: expected --tracer graph, function or profile",
            ));
        };
        self.names.require()?;
        self.triggers.check(self.names.syntax)?;
        let mut lines = vec![RequestLine::Tracer(tracer)];
        lines.extend(self.names.lines());
        lines.extend(self.triggers.lines(self.names.syntax));
        lines.extend(self.detail.lines());
        let wish = lines.iter().map(|line| format!("{line}\n")).collect();
        let library = library()?;
        Ok(Some(Preload { library, wish }))
    }
}

/// Where the shared object lies.
///
/// # Errors
/// It does not; where was looked.
pub(crate) fn library() -> Result<PathBuf, Failure> {
    let mut looked = Vec::new();
    if let Some(given) = std::env::var_os("RINGMARK_LIB").filter(|path| !path.is_empty()) {
        let given = PathBuf::from(given);
        looked.push(given.join(LIBRARY));
        looked.push(given);
    } else if let Some(beside) = std::env::current_exe()
        .ok()
        .as_deref()
        .and_then(Path::parent)
    {
        looked.push(beside.join("../lib/ringmark").join(LIBRARY));
        looked.push(beside.join(LIBRARY));
    }
    if let Some(found) = looked.iter().find(|path| path.is_file()) {
        return std::fs::canonicalize(found)
            .map_err(|error| Failure::no_target(format!("{}: {error}", found.display())));
    }
    let looked: Vec<_> = looked
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(Failure::no_target(format!(
        "{LIBRARY} is not there, looked for {}; RINGMARK_LIB says where else it may be. \
         'cargo build --release -p ringmark-functions' in Ringmark's source makes it, in target/release",
        looked.join(", ")
    )))
}

impl Preload {
    /// The variables that the program is started with.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 2] {
        let mut objects = self.library.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|text| !text.is_empty()) {
            objects.push(":");
            objects.push(others);
        }
        [
            ("LD_PRELOAD", objects),
            ("RINGMARK_TRACE", OsString::from(&self.wish)),
        ]
    }

    /// Says what keeps this program's functions from being traced. It may still start others, or
    /// load objects that can be.
    pub(crate) fn tell_of(program: &OsStr) {
        let Some(path) = on_path(program) else { return };
        if let Some(text) = obstacle(&path) {
            note(&format!("{}: {text}", path.display()));
        }
    }
}

/// The file that would be run.
fn on_path(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    files.find(|file| file.is_file())
}

/// `None` also where the file is no ELF file: whatever runs it may be traced.
fn obstacle(path: &Path) -> Option<String> {
    let found = in_file(path).ok()?;
    let about = std::fs::metadata(path).ok()?;
    let takes_user = about.mode() & 0o4000 != 0 && about.uid() != geteuid().as_raw();
    let takes_group = about.mode() & 0o2000 != 0 && about.gid() != getegid().as_raw();
    if found.is_static {
        return Some("is linked statically: nothing can be preloaded".to_owned());
    }
    if takes_user || takes_group {
        return Some("is setuid or setgid: nothing can be preloaded".to_owned());
    }
    found.functions.is_empty().then(|| no_sites(&found))
}
