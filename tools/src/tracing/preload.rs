//! The shared object of the function tracer in a program that is started.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ringmark_format::function::TracerKind;
use ringmark_format::tracer_text::RequestLine;
use ringmark_function_tracer::sites::{Headers, in_file};
use rustix::process::{getegid, geteuid};

use super::library::library;
use super::moved_sites::MovedSites;
use super::options::{CallChoice, CallDetail, FunctionNames};
use super::triggers::Triggers;
use super::untraceable::{STATIC, no_sites};
use ringmark_console::{Failure, note};

/// What a program is started with to have its functions traced.
#[derive(Debug)]
pub(crate) struct Preload {
    library: PathBuf,
    /// Lines of a request, which the shared object reads at its start.
    request: String,
    /// The patterns of functions.
    names: FunctionNames,
    choice: CallChoice,
}

/// Options of `run` and `record -- CMD` for function tracing.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Functions")]
pub(crate) struct FunctionOptions {
    /// Trace functions, too, all of them without --filter, with a function tracer of this kind: 'graph'
    /// records calls and their durations, 'function' calls and callers; 'profile' keeps counts and
    /// times in the program until it ends
    #[arg(long, value_name = "KIND")]
    #[arg(value_parser = ["graph", "function", "profile"], hide_possible_values = true)]
    pub(crate) kind: Option<String>,
    #[command(flatten)]
    names: FunctionNames,
    #[command(flatten)]
    choice: CallChoice,
    #[command(flatten)]
    triggers: Triggers,
    #[command(flatten)]
    detail: CallDetail,
}

impl FunctionOptions {
    /// What to start the program with, if functions are to be traced.
    ///
    /// # Errors
    /// The options contradict each other, or the shared object is not there.
    pub(crate) fn preload(&self) -> Result<Option<Preload>, Failure> {
        let Some(wanted) = self.wanted()? else {
            return Ok(None);
        };
        let lines = wanted.lines();
        let request = lines.iter().map(|line| format!("{line}\n")).collect();
        let library = library()?;
        let names = wanted.names.clone();
        let choice = self.choice.clone();
        Ok(Some(Preload {
            library,
            request,
            names,
            choice,
        }))
    }

    /// What is to be traced, if functions are.
    ///
    /// # Errors
    /// The options contradict each other, or a pattern is wrong.
    pub(crate) fn wanted(&self) -> Result<Option<Wanted<'_>>, Failure> {
        let Some(kind) = &self.kind else {
            let is_plain = self.detail.is_empty() && self.choice.is_empty();
            if self.names.is_empty() && is_plain && self.triggers.is_empty() {
                return Ok(None);
            }
            return Err(Failure::usage(
                "functions are named, but no kind: expected --kind graph, function or profile",
            ));
        };
        let names = self.names.or_all();
        names.check()?;
        self.choice.check(names.syntax)?;
        self.triggers.check(names.syntax)?;
        self.check_ends(kind)?;
        Ok(Some(Wanted {
            kind,
            names,
            options: self,
        }))
    }

    /// Checks that what is chosen by the ends of calls is recorded there, before the program starts.
    fn check_ends(&self, kind: &str) -> Result<(), Failure> {
        let callers = self.choice.caller.iter().any(|pattern| !pattern.is_empty());
        let is_timed = self.detail.min_time.is_some_and(|time| !time.is_zero());
        if kind == TracerKind::Profile.name() && (callers || is_timed) {
            return Err(Failure::usage(
                "a tracer of kind profile acts where a call begins: expected kind graph or function for \
                 calls by their duration (--min-time) or by what they lead to (--caller)",
            ));
        }
        Ok(())
    }
}

/// What tracing all functions of a running process may take of its CPU time: 10 %. A program of small functions did 97 % of
/// its work with this and with 2 %, 85 % with 20 %, and 25 % without a budget.
const DEFAULT_BUDGET_PPM: u64 = 100_000;

/// A function tracer that is wanted, and what it is to trace.
#[derive(Debug)]
pub(crate) struct Wanted<'a> {
    /// Its kind, which is its name, too.
    pub(crate) kind: &'a str,
    names: FunctionNames,
    options: &'a FunctionOptions,
}

impl Wanted<'_> {
    /// The functions and which of their calls, as lines of a request.
    pub(crate) fn name_lines(&self) -> Vec<RequestLine<'_>> {
        let mut lines = self.names.lines();
        lines.extend(self.options.choice.lines(self.names.syntax));
        lines
    }

    /// As lines of a start in a process that runs and is not to be slowed down by more than its user expects: with a
    /// budget where neither functions nor a budget are named.
    pub(crate) fn lines_with_budget(&self) -> Vec<RequestLine<'_>> {
        let mut lines = self.lines();
        if self.options.detail.budget.is_none() && self.options.names.filter.is_empty() {
            lines.push(RequestLine::BudgetPpm(DEFAULT_BUDGET_PPM));
        }
        lines
    }

    /// As lines of a start.
    pub(crate) fn lines(&self) -> Vec<RequestLine<'_>> {
        let mut lines = vec![RequestLine::Tracer(self.kind)];
        lines.extend(self.names.lines());
        lines.extend(self.options.choice.all_lines(self.names.syntax));
        lines.extend(self.options.triggers.lines(self.names.syntax));
        lines.extend(self.options.detail.all_lines());
        lines
    }
}

impl Preload {
    /// Functions of this program that may have to be traced without patch sites of its compiler; `None`: there
    /// are none.
    pub(crate) fn moved_sites(&self, program: &OsStr, pid: u32) -> Option<MovedSites> {
        let path = on_path(program)?;
        let mut lines = self.names.lines();
        lines.extend(self.choice.lines(self.names.syntax));
        let moved = MovedSites::of(pid, &lines);
        let may_be = match Headers::of(&path) {
            Ok(headers) => !headers.is_static && moved.may_mean_any(headers.names_sites),
            // A script: the program that runs it is meant where functions are named.
            Err(_) => !self.names.filter.is_empty(),
        };
        may_be.then_some(moved)
    }

    /// The environment variables that this program is started with.
    pub(crate) fn variables(&self, program: &OsStr) -> Vec<(&'static str, OsString)> {
        // Behind those of the user, who knows which must come first: a sanitizer, an allocator.
        let mut objects = OsString::new();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|text| !text.is_empty()) {
            objects.push(others);
            objects.push(":");
        }
        objects.push(&self.library);
        let mut variables = vec![
            ("LD_PRELOAD", objects),
            ("RINGMARK_TRACE", OsString::from(self.request_of(program))),
        ];
        variables.extend(asan_options(program).map(|options| (ASAN_OPTIONS, options)));
        variables
    }

    fn request_of(&self, program: &OsStr) -> String {
        match self.moved_sites(program, 0) {
            Some(_) => format!(
                "{}{}\n",
                self.request,
                RequestLine::Await(std::process::id())
            ),
            None => self.request.clone(),
        }
    }

    /// Prints why the functions of this program cannot be traced, as far as the headers of its file
    /// tell; returns whether there is a reason. The program is started all the same: it may start
    /// others, or load objects, whose functions can be.
    pub(crate) fn tell_of(program: &OsStr) -> bool {
        tell(program, obstacle)
    }

    /// Prints why none of the patch sites that this program has can be used; returns whether that is so.
    /// To see it, its whole file is read.
    pub(crate) fn tell_of_refused(program: &OsStr) -> bool {
        tell(program, |path| {
            let found = in_file(path).ok()?;
            let is_refused = found.functions.is_empty() && !found.refused.is_empty();
            is_refused.then(|| no_sites(&found))
        })
    }
}

/// The options of AddressSanitizer.
const ASAN_OPTIONS: &str = "ASAN_OPTIONS";
/// Has it not insist on being the first object after the program. It must come before objects that have functions of
/// the same names, and that with the function tracer has none.
const ANY_ORDER: &str = "verify_asan_link_order=0";

/// The options for a program that loads AddressSanitizer as a shared object; `None`: they stay as they are.
fn asan_options(program: &OsStr) -> Option<OsString> {
    let headers = Headers::of(&on_path(program)?).ok()?;
    let given = std::env::var_os(ASAN_OPTIONS).unwrap_or_default();
    let is_decided = given.to_string_lossy().contains("verify_asan_link_order");
    if !headers.loads_asan || is_decided {
        return None;
    }
    let mut options = given;
    if !options.is_empty() {
        options.push(":");
    }
    options.push(ANY_ORDER);
    Some(options)
}

fn tell(program: &OsStr, of_file: fn(&Path) -> Option<String>) -> bool {
    let path = on_path(program);
    let found = path.and_then(|path| Some((of_file(&path)?, path)));
    if let Some((text, path)) = &found {
        note(&format!("{}: {text}", path.display()));
    }
    found.is_some()
}

/// The file that a program's name means.
fn on_path(program: &OsStr) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(PathBuf::from(program));
    }
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|dir| dir.join(program));
    files.find(|file| file.is_file())
}

/// Why functions of a file cannot be traced. `None` also for a file that is not ELF: its
/// interpreter may be traced.
fn obstacle(path: &Path) -> Option<String> {
    let headers = Headers::of(path).ok()?;
    let about = std::fs::metadata(path).ok()?;
    let takes_user = about.mode() & 0o4000 != 0 && about.uid() != geteuid().as_raw();
    let takes_group = about.mode() & 0o2000 != 0 && about.gid() != getegid().as_raw();
    if headers.is_static {
        return Some(STATIC.to_owned());
    }
    if takes_user || takes_group {
        return Some("is setuid or setgid: nothing can be preloaded".to_owned());
    }
    None
}
