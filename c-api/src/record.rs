//! The functions that the header calls for records that its inline path cannot write, and for all
//! records of languages that cannot inline C.

use core::ptr;

use ringmark::__private::foreign::reserve_words_extended;
use ringmark::__private::raw::{self, RawReservation, RawSpan};
use ringmark::client::{Now, reserve_words};
use ringmark_format::TypeId;

use crate::caught;

const NOTHING: RawReservation = RawReservation {
    writer: ptr::null(),
    header: ptr::null(),
    payload: ptr::null(),
    commit: 0,
    cancel: 0,
};

/// Reserves a record; `to` gets null pointers if the event is lost, which is then counted.
/// `is_at`: it happened at `tick`, which the header's straight line has tried; else now.
///
/// # Safety
/// `to` must be a place for a reservation.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_reserve_slow(
    to: *mut RawReservation,
    type_id: u32,
    payload_words: u64,
    tick: u64,
    is_at: u32,
) {
    // SAFETY: as the caller says.
    unsafe { reserve(to, type_id, payload_words, tick, is_at) };
}

/// Not an exported function: this library's own calls must not find that of another copy.
///
/// # Safety
/// As [`ringmark_reserve_slow`].
unsafe fn reserve(
    to: *mut RawReservation,
    type_id: u32,
    payload_words: u64,
    tick: u64,
    is_at: u32,
) {
    if is_at != 0 && !raw::is_permitted(type_id) {
        // SAFETY: the caller's place.
        unsafe { to.write(NOTHING) };
        return;
    }
    let type_id = TypeId(type_id);
    if is_at != 0
        && let Some(reserved) = reserve_words_extended(type_id, payload_words, tick)
    {
        // SAFETY: the caller's place.
        unsafe { to.write(reserved.into_raw()) };
        return;
    }
    let now = if is_at == 0 {
        Now::Clock
    } else {
        Now::At(tick)
    };
    let reserved = caught(NOTHING, || {
        reserve_words(type_id, payload_words, now).map_or(NOTHING, |r| r.into_raw())
    });
    // SAFETY: the caller's place.
    unsafe { to.write(reserved) };
}

/// Reserves a record as [`ringmark_reserve_slow`] does, for callers without the inline path.
///
/// # Safety
/// As for [`ringmark_reserve_slow`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_reserve_call(
    to: *mut RawReservation,
    type_id: u32,
    payload_words: u64,
) {
    // SAFETY: as the caller says.
    unsafe { reserve(to, type_id, payload_words, 0, 0) };
}

/// Commits a record.
///
/// # Safety
/// `of` must be a reservation of this thread, neither committed nor cancelled yet.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_commit_call(of: *const RawReservation) {
    // SAFETY: the caller's reservation.
    let reservation = unsafe { of.read() };
    // SAFETY: as the caller says.
    unsafe { reservation.commit() };
}

/// Gives a reservation up.
///
/// # Safety
/// As [`ringmark_commit_call`].
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_cancel_call(of: *const RawReservation) {
    // SAFETY: the caller's reservation.
    let reservation = unsafe { of.read() };
    // SAFETY: as the caller says.
    unsafe { reservation.cancel() };
}

/// The session's clock in ticks; 0 without a session.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_ticks_slow() -> u64 {
    caught(0, ringmark::ticks)
}

/// Gets a ring for a thread that begins a span as the first thing it records. Returns its writer;
/// null: there is none.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_attach_slow() -> *const core::ffi::c_void {
    let writer = caught(None, raw::attach_for_span);
    writer.map_or(ptr::null(), |writer| ptr::from_ref(writer).cast())
}

/// Claims a frame for a span, where the inline path could not. Returns its head; the stack's end: it is
/// only counted; null: it stands nowhere.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ringmark_claim_slow() -> *const u64 {
    raw::claim()
}

/// Takes a span off the stack of open spans, where the inline path could not.
///
/// # Safety
/// `span` must be one that the inline path began in this process, or in one that forked it.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn ringmark_pop_slow(span: *const RawSpan, is_lexical: u32) {
    // SAFETY: the caller's span.
    let span = unsafe { span.read() };
    // SAFETY: as the caller says.
    unsafe { raw::end(&span, is_lexical != 0) };
}
