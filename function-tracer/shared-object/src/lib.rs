//! `libringmark_functions.so`: the function tracer for programs that were built without it, loaded
//! by `LD_PRELOAD` or `dlopen`. Loading it does what `start` says. It is never unmapped.
//!
//! # Invariants
//!
//! 1. The caller promises that `visit` may be called with its `argument` on this thread until the
//!    function returns.
//! 2. The caller promises `count` numbers at `ids`, which stay until the function returns.
//! 3. The caller promises that `target` is null, or code that keeps the rules for targets.

mod attach;
mod callback;
mod sanitizers;
mod start;

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;

use ringmark_function_tracer::{
    Engine, Module, Site, SiteId, SiteTarget, Target, Threads, with_engine,
};

/// What is known about a patch site, or about a table entry that is none.
#[repr(C)]
#[derive(Debug)]
pub struct RingmarkSite {
    /// The site's number; `UINT32_MAX`: no patch site.
    pub id: u32,
    /// The number of its [`ringmark_function_tracer::SiteKind`]: 0 entry, 1 exit, 2 exit before a
    /// return, 3 tail exit.
    pub kind: u32,
    /// Address of the site's first byte.
    pub address: u64,
    /// The address that a target finds at `8(%rsp)`.
    pub return_address: u64,
    /// Address of the function's first byte; 0: unknown.
    pub function: u64,
    /// The function's name in the symbol table.
    pub symbol: *const c_char,
    /// Path of the module.
    pub module: *const c_char,
    /// Why it is no patch site, or null.
    pub reason: *const c_char,
}

type Visit = unsafe extern "C" fn(argument: *mut c_void, site: *const RingmarkSite);

/// Runs `work` with the engine, which the first scan makes.
fn with<R>(work: impl FnOnce(&mut Engine) -> R) -> R {
    with_engine(Threads::Running, work)
}

/// Finds modules that were loaded or unloaded. `threads` is 0 before the program's start, when no
/// thread can be inside a site, else 1. Returns the number of patch sites.
#[unsafe(no_mangle)]
pub extern "C" fn ringmark_functions_scan(threads: c_int) -> usize {
    let first = if threads == 0 {
        Threads::NotYet
    } else {
        Threads::Running
    };
    with_engine(first, |engine| {
        if threads != 0 {
            engine.threads_run();
        }
        engine.rescan();
        engine.modules().map(|module| module.sites.len()).sum()
    })
}

/// Calls `visit` with every patch site and every refused table entry of the last scan.
///
/// # Safety
/// `visit` must be a function of that type, which does not call this library.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringmark_functions_list(visit: Visit, argument: *mut c_void) {
    with(|engine| {
        engine.modules().for_each(|module| {
            let path = text(module.path.as_os_str().as_bytes());
            for site in &module.sites {
                let symbol = module
                    .function(site)
                    .map_or(&b""[..], |function| &function.symbol);
                let symbol = text(symbol);
                let about = about(module, site, &symbol, &path);
                // SAFETY: invariant 1; the strings live until the function returns.
                unsafe { visit(argument, &raw const about) };
            }
            for refused in &module.refused {
                let (symbol, reason) = (
                    text(&refused.symbol),
                    text(refused.reason.to_string().as_bytes()),
                );
                let about = RingmarkSite {
                    id: u32::MAX,
                    kind: 0,
                    address: refused.address,
                    return_address: 0,
                    function: 0,
                    symbol: symbol.as_ptr(),
                    module: path.as_ptr(),
                    reason: reason.as_ptr(),
                };
                // SAFETY: invariant 1; the strings live until the function returns.
                unsafe { visit(argument, &raw const about) };
            }
        })
    });
}

fn about(module: &Module, site: &Site, symbol: &CString, path: &CString) -> RingmarkSite {
    RingmarkSite {
        id: site.id.0,
        kind: site.kind as u32,
        address: site.address,
        return_address: site.return_address(),
        function: module.function(site).map_or(0, |function| function.address),
        symbol: symbol.as_ptr(),
        module: path.as_ptr(),
        reason: std::ptr::null(),
    }
}

fn text(bytes: &[u8]) -> CString {
    let whole: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != 0).collect();
    CString::new(whole).unwrap_or_default()
}

/// Makes `count` patch sites call `target`; null disables them. Returns how many do so.
///
/// # Safety
/// `ids` must point to `count` numbers, and `target` to code that keeps to the rules for targets.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ringmark_functions_switch(
    ids: *const u32,
    count: usize,
    target: *const c_void,
) -> usize {
    if ids.is_null() {
        return 0;
    }
    // SAFETY: invariant 2.
    let ids = unsafe { std::slice::from_raw_parts(ids, count) };
    // SAFETY: invariant 3.
    let made = unsafe { Target::new(target as u64) };
    let target = (!target.is_null()).then_some(made);
    let targets = ids.iter().map(|id| SiteTarget {
        site: SiteId(*id),
        target,
    });
    let targets: Vec<_> = targets.collect();
    with(|engine| engine.switch(&targets).done)
}
