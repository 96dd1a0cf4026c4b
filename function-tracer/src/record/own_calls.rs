//! The functions of the C library that the way of a call uses. None of them may be traced: the slow way would
//! enter itself again.

/// Their addresses, as the loader has bound them: of several implementations the one in use.
pub(crate) fn own_calls() -> Vec<u64> {
    let mut calls: Vec<u64> = [
        libc::memcpy as *const () as u64,
        libc::memmove as *const () as u64,
        libc::memset as *const () as u64,
        libc::memcmp as *const () as u64,
        libc::strlen as *const () as u64,
        libc::clock_gettime as *const () as u64,
        libc::pthread_self as *const () as u64,
        libc::pthread_getattr_np as *const () as u64,
        libc::pthread_sigmask as *const () as u64,
        libc::sigaltstack as *const () as u64,
        libc::getpid as *const () as u64,
        libc::syscall as *const () as u64,
        libc::__errno_location as *const () as u64,
    ]
    .to_vec();
    calls.push(super::x86_64::set_cancel_state());
    calls.push(super::x86_64::get_thread_id());
    calls
}
