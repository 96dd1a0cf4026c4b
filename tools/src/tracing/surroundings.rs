//! What is there for tracing functions, and what stands against it: rights to attach, the shared
//! object, libraries, compilers, a process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ringmark::__private::reference;
use ringmark_attach::{Options, Permission};
use ringmark_reader::host::Finding;
use ringmark_reader::{Access, Session, find};

use super::{inject, library, mounts, movable};
use ringmark_console::units::counted;

/// What compilers are given to make functions traceable.
const FLAG: &str = "-fpatchable-function-entry=5";
/// File name of the library of C programs.
const C_LIBRARY: &str = "libringmark.so.0";

/// What may be attached to.
pub(crate) fn attaching() -> Vec<Finding> {
    let own = Permission::own();
    vec![ptrace(own), filters(own)]
}

fn ptrace(own: Permission) -> Finding {
    const ABOUT: &str = "ptrace";
    let scope = match own.scope {
        None => "no Yama".to_owned(),
        Some(scope) => format!("kernel.yama.ptrace_scope={scope}"),
    };
    match (own.may_trace_others, own.scope) {
        (_, Some(3)) => Finding::limited(
            ABOUT,
            format!("{scope}: no process can be attached to until the next boot"),
            "start programs with 'ringmark run'",
        ),
        (true, _) => Finding::works(ABOUT, format!("{scope}; CAP_SYS_PTRACE: all processes")),
        (false, None | Some(0)) => Finding::works(ABOUT, format!("{scope}: your processes")),
        (false, Some(_)) => Finding::limited(
            ABOUT,
            format!("{scope}: only processes that you start with 'ringmark run'"),
            "'sudo sysctl kernel.yama.ptrace_scope=0', or run 'ringmark' as root",
        ),
    }
}

fn filters(own: Permission) -> Finding {
    const ABOUT: &str = "seccomp";
    match (own.is_filtered, own.may_read_filters) {
        (true, _) => Finding::limited(
            ABOUT,
            "a filter limits this process and what it starts, as in a container",
            "to attach to filtered processes, run 'ringmark' as root outside of the container",
        ),
        (false, true) => Finding::works(ABOUT, "no filter; those of others can be read"),
        (false, false) => Finding::works(
            ABOUT,
            "no filter; those of others are for root (CAP_SYS_ADMIN)",
        ),
    }
}

/// What functions are traced with.
pub(crate) fn parts() -> Vec<Finding> {
    let mut findings = vec![shared_object(), c_library()];
    findings.extend(["gcc", "clang"].map(compiler));
    findings
}

fn shared_object() -> Finding {
    const ABOUT: &str = "function tracer";
    match library::library() {
        Ok(path) => versioned(ABOUT, &path),
        Err(failure) => {
            let advice = match cfg!(target_arch = "x86_64") {
                true => "install it, or set RINGMARK_LIB; events need none of it",
                false => "events need none of it",
            };
            Finding::limited(ABOUT, failure.text, advice)
        }
    }
}

fn c_library() -> Finding {
    const ABOUT: &str = "C library";
    let own = std::env::current_exe().unwrap_or_default();
    let near = own.parent().map(|bin| bin.join("../lib"));
    let named = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let of_debian = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
    let usual = ["/usr/local/lib", &of_debian, "/usr/lib64", "/usr/lib"];
    let folders = near.into_iter().chain(std::env::split_paths(&named));
    let mut folders = folders.chain(usual.map(PathBuf::from));
    let found = folders.find_map(|folder| fs::canonicalize(folder.join(C_LIBRARY)).ok());
    match found {
        Some(path) => versioned(ABOUT, &path),
        None => Finding::absent(
            ABOUT,
            format!("{C_LIBRARY} is not installed: C and C++ programs with events need it"),
            "'./install PREFIX' in Ringmark's source installs it",
        ),
    }
}

/// A file that holds the library, compared with this program's.
fn versioned(about: &'static str, path: &Path) -> Finding {
    let bytes = fs::read(path).unwrap_or_default();
    let shown = path.display();
    let own = reference::version();
    match reference::version_in(&bytes) {
        Some(version) if version == own => Finding::works(about, format!("{version}, {shown}")),
        Some(version) => Finding::limited(
            about,
            format!("{version}, {shown}; this is ringmark {own}"),
            "install both from one release",
        ),
        None => Finding::limited(
            about,
            format!("{shown} does not state its version: not a library of this release"),
            "install it from the release that 'ringmark' is from",
        ),
    }
}

fn compiler(name: &'static str) -> Finding {
    let run = |arguments: &[&str]| {
        let mut command = Command::new(name);
        command.args(arguments).stdin(Stdio::null());
        command.output().ok()
    };
    let Some(version) = run(&["--version"]).filter(|output| output.status.success()) else {
        let advice = format!("none is needed to run; gcc 8 and clang 10 know {FLAG}");
        return Finding::absent(name, "is not installed", advice);
    };
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.lines().next().unwrap_or_default().to_owned();
    let checked = run(&[FLAG, "-fsyntax-only", "-x", "c", "-"]);
    match checked.is_some_and(|output| output.status.success()) {
        true => Finding::works(name, format!("{version}: knows {FLAG}")),
        false => {
            let advice = "use gcc 8 or clang 10 or later";
            Finding::limited(name, format!("{version}: does not know {FLAG}"), advice)
        }
    }
}

/// What can be done with one process.
pub(crate) fn of_process(pid: u32) -> Vec<Finding> {
    if !Path::new(&format!("/proc/{pid}")).exists() {
        let advice = "'ringmark list' shows traced processes, 'ps' all";
        return vec![Finding::fails(
            "process",
            format!("pid {pid}: no such process"),
            advice,
        )];
    }
    let events = sessions(pid);
    let functions = attach(pid);
    match (events, functions) {
        // One of the two is enough to see something of it.
        (Err(events), Ok(functions)) => vec![
            Finding::absent(events.about, events.found, "none is needed for functions"),
            functions,
        ],
        (Ok(events), Err(functions)) => vec![
            events,
            Finding::limited(functions.about, functions.found, advice(&functions.advice)),
        ],
        (Ok(events) | Err(events), Ok(functions) | Err(functions)) => vec![events, functions],
    }
}

fn advice(text: &Option<String>) -> String {
    text.clone().unwrap_or_default()
}

/// Its events: `Err` where it has no session.
fn sessions(pid: u32) -> Result<Finding, Finding> {
    const ABOUT: &str = "events";
    let advice = "start it with RINGMARK=1, if it uses Ringmark";
    let places =
        find::by_pid(pid).map_err(|error| Finding::fails(ABOUT, error.to_string(), advice))?;
    let open = |place| Session::open_found(place, Access::Observe);
    match places.iter().map(open).collect::<Result<Vec<_>, _>>() {
        Ok(open) => {
            let number = counted(open.len() as u64, "session");
            Ok(Finding::works(ABOUT, format!("pid {pid} has {number}")))
        }
        Err(error) => Err(Finding::fails(
            ABOUT,
            error.to_string(),
            "use the 'ringmark' that belongs to its library",
        )),
    }
}

/// What can be done where a program has no functions that can be traced.
const WITHOUT_SITES: &str = "for its calls build it again, as the guide says about functions";

/// Its functions: `Err` where the function tracer cannot be loaded.
fn attach(pid: u32) -> Result<Finding, Finding> {
    const ABOUT: &str = "functions";
    let fails =
        |text: String| Finding::fails(ABOUT, text, "start it with 'ringmark run --kind graph'");
    if let Some(obstacle) = inject::obstacle(pid) {
        return Err(fails(obstacle.text));
    }
    if inject::is_loaded(pid) {
        let found = format!("pid {pid} runs the function tracer");
        return Ok(Finding::works(ABOUT, found));
    }
    let prepared = inject::require_sites(pid);
    if let Err(failure) = prepared
        && !movable::has_any(pid)
    {
        return Err(Finding::fails(ABOUT, failure.text, WITHOUT_SITES));
    }
    let library = library::library().map_err(|failure| fails(failure.text))?;
    let options = Options {
        needs_memfd: !mounts::shares_sessions(pid),
        ..Options::default()
    };
    ringmark_attach::examine(pid.cast_signed(), &library, &options)
        .map_err(|error| fails(error.to_string()))?;
    let found = format!("'ringmark trace start -p {pid}' can load the function tracer");
    Ok(Finding::works(ABOUT, found))
}
