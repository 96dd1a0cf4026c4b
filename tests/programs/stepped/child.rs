//! What a program does that its parent runs one instruction at a time.

use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::sync::atomic::AtomicU64;
use std::{mem, ptr, slice};

/// The page of a file that the program shares with its test.
pub(crate) fn share(path: &str) -> &'static [AtomicU64] {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).open(path).expect("a ledger");
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let (flags, descriptor) = (libc::MAP_SHARED, file.as_raw_fd());
    // SAFETY: a new shared mapping, no address given, one page of a file that has one.
    let page = unsafe { libc::mmap(ptr::null_mut(), 4096, protection, flags, descriptor, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    // SAFETY: 512 aligned words, mapped for ever; the test only reads them.
    unsafe { slice::from_raw_parts(page.cast(), 512) }
}

/// Sets a handler that touches nothing but atomics and the ring of its thread.
pub(crate) fn handle(signal: libc::c_int, handler: extern "C" fn(libc::c_int)) {
    // SAFETY: zeros are a valid action to be filled in.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    action.sa_sigaction = handler as *const () as libc::sighandler_t;
    action.sa_flags = libc::SA_RESTART;
    // SAFETY: the handler touches atomics and this thread's ring alone.
    let set = unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
    assert_eq!(set, 0);
}

/// Lets the parent trace this process.
pub(crate) fn be_traced() {
    // SAFETY: asks the parent to trace this process; no memory is passed.
    let traced = unsafe { libc::ptrace(libc::PTRACE_TRACEME) };
    assert_eq!(traced, 0);
}

/// Stops the program where the test waits for it.
pub(crate) fn stop() {
    // SAFETY: a signal to this thread; the tracer takes it.
    unsafe { libc::raise(libc::SIGSTOP) };
}
