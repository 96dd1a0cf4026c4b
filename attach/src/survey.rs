//! The process's modules at a moment, and what the code needs of them.

use std::ffi::CStr;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::LoadError;
use crate::maps::{self, Line};
use crate::memory::Memory;
use crate::module::{self, Module, Owner};
use crate::source::Source;
use crate::trampoline::{self, Functions, Library, Work};

/// Why a program cannot load that begins just now, or has an old C library.
pub(crate) const NOT_LOADED: &str = "no dlopen in it: its C library is too old, or not loaded yet";

/// A function of the library and its argument.
pub(crate) type Call<'a> = Option<(&'a CStr, &'a CStr)>;

/// What was read while all threads ran.
pub(crate) struct Survey<'a> {
    lines: Vec<Line>,
    pub(crate) modules: Vec<Module>,
    pub(crate) work: Work<'a>,
    /// Inside the program's own code a lock may be held that its own `malloc` needs.
    pub(crate) brings_allocator: bool,
    /// Where the code can stand, and its length.
    pub(crate) place: u64,
    pub(crate) length: u64,
}

impl<'a> Survey<'a> {
    pub(crate) fn of(
        pid: i32,
        memory: &Memory,
        path: &'a Path,
        source: &'a Source,
        call: Call<'a>,
    ) -> Result<Self, LoadError> {
        let lines = maps::read(pid)?;
        if lines.is_empty() {
            return Err(LoadError::NoProcess { pid });
        }
        let modules = module::all(memory, &lines);
        let unsuitable = |reason| LoadError::Unsuitable { pid, reason };
        let functions = functions(&modules).map_err(unsuitable)?;
        let work = Work {
            functions,
            // Nothing else in the target has this number by chance.
            nonce: RandomState::new().hash_one(pid) | 1,
            library: match source {
                Source::File => Library::At(path.as_os_str().as_bytes()),
                Source::Copy { name, bytes } => Library::Copied(name, bytes.len() as u64),
            },
            call: call.map(|(name, argument)| (name.to_bytes(), argument.to_bytes())),
        };
        let length = trampoline::length(&work);
        let staying = modules.iter().filter(|module| module.stays());
        let mut rooms = staying.filter_map(|module| module.room(memory, &lines, length));
        let place = rooms.next().ok_or_else(|| {
            unsuitable("no room for the loading code after the code of its modules")
        })?;
        let brings_allocator = modules
            .iter()
            .any(|module| module.owner == Owner::Program && module.function("malloc").is_some());
        Ok(Self {
            lines,
            modules,
            work,
            brings_allocator,
            place,
            length: length as u64,
        })
    }
}

impl Survey<'_> {
    /// Whether the modules are still those that were read. Asked while a thread is stopped: those on
    /// its stack cannot go.
    pub(crate) fn is_current(&self, pid: i32) -> bool {
        let code = |lines: &[Line]| -> Vec<_> {
            let code = lines.iter().filter(|line| line.is_executable);
            code.map(|line| (line.range.clone(), line.file.clone()))
                .collect()
        };
        maps::read(pid).is_ok_and(|now| code(&now) == code(&self.lines))
    }
}

/// What the code calls, or why it cannot.
fn functions(modules: &[Module]) -> Result<Functions, &'static str> {
    let is_libc = |module: &&Module| module.owner == Owner::Libc || module.path.contains("/libdl");
    let find = |name| {
        let mut libc = modules.iter().filter(is_libc);
        libc.find_map(|module| module.function(name))
    };
    let is_other = find("dlopen").is_some() && find("gnu_get_libc_version").is_none();
    let is_musl = |module: &Module| module.path.contains("/ld-musl");
    if is_other || modules.iter().any(is_musl) {
        return Err(
            "its C library is not glibc (musl, perhaps), and the shared object needs glibc; build the program for glibc (x86_64-unknown-linux-gnu)",
        );
    }
    if modules
        .iter()
        .any(|module| module.function("__tsan_init").is_some())
    {
        return Err(
            "it runs with ThreadSanitizer, which would report races of the tracer and change its exit status; start it with 'ringmark run --kind KIND -- PROGRAM'",
        );
    }
    let all = || {
        Some(Functions {
            dlopen: find("dlopen")?,
            dlsym: find("dlsym")?,
            dlerror: find("dlerror")?,
            errno_location: find("__errno_location")?,
            setcancelstate: find("pthread_setcancelstate")?,
        })
    };
    all().ok_or_else(|| {
        if modules.iter().any(|module| module.has_interpreter) {
            NOT_LOADED
        } else {
            "a statically linked program, which has no dlopen; link it dynamically, or with Ringmark's crate or library"
        }
    })
}
