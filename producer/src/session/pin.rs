//! Keeps the object that holds this code mapped: a host may close the plugin whose session it is,
//! while the helper thread, the hooks of fork, of exit and of ending threads lead here.
//!
//! # Invariants
//!
//! 1. The linker or the loader puts an address into the table of addresses (GOT): that of the
//!    function of this name, which has the type that C declares for it, or 0.
//! 2. The loader writes an object's address and name into the [`libc::Dl_info`] that it is given.
//!    The name is its own text, there as long as the object, which is the program or holds this
//!    code.
//! 3. The kernel writes the auxiliary vector before the process starts, and no code changes it.
//! 4. The GNU C library that the program needs stays open as long as the program.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::{MaybeUninit, transmute};
use core::ptr;

use crate::platform::arch;

type FindObject = unsafe extern "C" fn(*const c_void, *mut libc::Dl_info) -> c_int;
type FindSymbol = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;
type Open = unsafe extern "C" fn(*const c_char, c_int) -> *mut c_void;

/// The address of a function of the loader, or another one that the program may have. `None`: it has none, as a static
/// program has no loader. (A weak symbol does not bring the C library's own into it.)
macro_rules! of_loader {
    ($name:literal) => {{
        let address = arch::weak_address!($name);
        (address != 0).then_some(address)
    }};
}

/// Whether there is a loader: not in a static program.
pub(super) fn has_loader() -> bool {
    of_loader!("dlopen").is_some()
}

/// Whether the program runs under ThreadSanitizer.
pub(super) fn has_tsan() -> bool {
    of_loader!("__tsan_init").is_some()
}

/// Whether this code is part of the program's own file, and not of a shared object.
pub(crate) fn is_in_program() -> bool {
    let Some(find) = of_loader!("dladdr") else {
        return true;
    };
    // SAFETY: invariant 1.
    let find = unsafe { transmute::<usize, FindObject>(find) };
    let own = object_of(find, is_in_program as *const () as *const c_void);
    own.is_some_and(|own| program(find).is_some_and(|program| program.0 == own.0))
}

/// The object of the program itself.
fn program(find: FindObject) -> Option<(usize, &'static CStr)> {
    // SAFETY: invariant 3.
    let entry = unsafe { libc::getauxval(libc::AT_ENTRY) };
    object_of(find, ptr::without_provenance(entry as usize))
}

/// The address of a function of the GNU C library, whatever the program calls by its name. `None`:
/// this is a static program, or its C library is another one.
pub(super) fn of_glibc(name: &CStr) -> Option<usize> {
    let (open, symbol) = (of_loader!("dlopen")?, of_loader!("dlsym")?);
    // SAFETY: invariant 1.
    let open = unsafe { transmute::<usize, Open>(open) };
    // SAFETY: invariant 1.
    let symbol = unsafe { transmute::<usize, FindSymbol>(symbol) };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: invariant 1; nothing is loaded.
    let library = unsafe { open(c"libc.so.6".as_ptr(), flags) };
    if library.is_null() {
        return None;
    }
    // SAFETY: invariants 1 and 4.
    let address = unsafe { symbol(library, name.as_ptr()) };
    (!address.is_null()).then(|| address.addr())
}

/// Keeps this very object mapped for ever, if it is one that could be closed.
pub(super) fn own_object() {
    keep_mapped(own_object as *const () as *const c_void);
}

/// Keeps the object mapped for ever in which this address lies. The program itself cannot be closed.
pub(crate) fn keep_mapped(address: *const c_void) {
    let (Some(find), Some(open)) = (of_loader!("dladdr"), of_loader!("dlopen")) else {
        return;
    };
    // SAFETY: invariant 1.
    let find = unsafe { transmute::<usize, FindObject>(find) };
    // SAFETY: invariant 1.
    let open = unsafe { transmute::<usize, Open>(open) };
    let Some((base, name)) = object_of(find, address) else {
        return;
    };
    if program(find).is_none_or(|program| program.0 != base) {
        let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
        // SAFETY: invariant 2: a name that the loader gave; nothing is loaded.
        let _ = unsafe { open(name.as_ptr(), flags) };
    }
}

/// Where the object begins in which this address lies, and its name.
fn object_of(find: FindObject, address: *const c_void) -> Option<(usize, &'static CStr)> {
    let mut about = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: invariant 2: writes to the local that it is given.
    let found = unsafe { find(address, about.as_mut_ptr()) };
    // SAFETY: invariant 2: filled in, or all zeros, which are a value of it.
    let about = unsafe { about.assume_init() };
    if found == 0 || about.dli_fname.is_null() {
        return None;
    }
    // SAFETY: invariant 2: the loader's own text.
    let name = unsafe { CStr::from_ptr(about.dli_fname) };
    Some((about.dli_fbase.addr(), name))
}
