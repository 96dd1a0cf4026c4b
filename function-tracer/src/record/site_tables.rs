//! Tables by a patch site's number, which the stubs read: the site's function type, and where its
//! function has its return address.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32};

use ringmark_format::function::LAST_NUMBER;
use rustix::mm::MapFlags;

use super::own_memory;

/// Start of the table of function types; null before the first site is enabled.
pub(crate) static TYPES: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Start of the table for sites inside functions, of [`crate::arch::ReturnPlace::word`].
pub(crate) static RETURN_PLACES: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Sites that each table has a word for. Untouched parts take no memory.
pub(crate) const SITES_MAX: u32 = LAST_NUMBER + 1;

/// Makes the tables on the first call. `false`: there is no memory.
pub(crate) fn prepare() -> bool {
    make(&TYPES) && make(&RETURN_PLACES)
}

fn make(table: &AtomicPtr<AtomicU32>) -> bool {
    if !table.load(Acquire).is_null() {
        return true;
    }
    let bytes = SITES_MAX as usize * size_of::<u32>();
    let start = own_memory::map(ptr::null_mut(), bytes, MapFlags::empty());
    let Some(start) = start else { return false };
    let _ = table.compare_exchange(ptr::null_mut(), start.cast(), Release, Relaxed);
    true
}

/// Sets the type of a site's records. The table must exist.
pub(crate) fn set_type(site: u32, type_word: u32) {
    set_in(&TYPES, site, type_word);
}

/// Sets where the function of a site inside it has its return address. The table must exist.
pub(crate) fn set_return_place(site: u32, word: u32) {
    set_in(&RETURN_PLACES, site, word);
}

fn set_in(table: &AtomicPtr<AtomicU32>, site: u32, word: u32) {
    debug_assert!(site < SITES_MAX);
    let start = table.load(Acquire);
    if site < SITES_MAX && !start.is_null() {
        // SAFETY: record invariants 1, 2 and 4; the table has `SITES_MAX` words.
        unsafe { &*start.wrapping_add(site as usize) }.store(word, Release);
    }
}
