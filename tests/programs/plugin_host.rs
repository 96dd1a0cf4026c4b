//! A program that opens a shared object, uses it, and closes it while the object's session runs:
//! `plugin_host FILE HOW`. It knows nothing of Ringmark.

use std::ffi::CString;
use std::sync::mpsc;
use std::time::Duration;
use std::{env, mem, thread};

type Start = extern "C" fn(u32) -> bool;
type Emit = extern "C" fn(u64);

/// An open shared object, and two functions of it.
struct Plugin {
    handle: usize,
    start: Start,
    emit: Emit,
}

fn open(file: &str) -> Plugin {
    let file = CString::new(file).expect("a path");
    // SAFETY: the object's constructors are Rust's.
    let handle = unsafe { libc::dlopen(file.as_ptr(), libc::RTLD_NOW) };
    assert!(!handle.is_null(), "{file:?} cannot be opened");
    // SAFETY: the object is open.
    let start = unsafe { libc::dlsym(handle, c"plugin_start".as_ptr()) };
    // SAFETY: the object is open.
    let emit = unsafe { libc::dlsym(handle, c"plugin_emit".as_ptr()) };
    assert!(!start.is_null() && !emit.is_null());
    Plugin {
        handle: handle.addr(),
        // SAFETY: functions of this type in the object.
        start: unsafe { mem::transmute::<*mut libc::c_void, Start>(start) },
        // SAFETY: as above.
        emit: unsafe { mem::transmute::<*mut libc::c_void, Emit>(emit) },
    }
}

fn close(plugin: Plugin) {
    // SAFETY: none of its functions is called afterwards.
    let closed = unsafe { libc::dlclose(plugin.handle as *mut libc::c_void) };
    assert_eq!(closed, 0);
}

/// Opens and closes the object under all that its session hangs on: its helper thread, a thread
/// that ends, a fork, the end of the process.
pub(crate) fn main() {
    let mut arguments = env::args().skip(1);
    let file = arguments.next().expect("a file");
    let how = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(0);
    let plugin = open(&file);
    assert!((plugin.start)(how), "no session");
    (plugin.emit)(10);
    let (emitted, wait_emitted) = mpsc::channel();
    let (closed, wait_closed) = mpsc::channel::<()>();
    let emit = plugin.emit;
    let other = thread::spawn(move || {
        emit(10);
        let _ = emitted.send(());
        let _ = wait_closed.recv();
    });
    wait_emitted.recv().expect("a thread that emits");
    close(plugin);
    // The helper thread looks around at least ten times a second.
    thread::sleep(Duration::from_millis(300));
    drop(closed);
    other.join().expect("a thread that ends");
    // SAFETY: the child ends at once.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        // SAFETY: ends the child.
        unsafe { libc::_exit(0) };
    }
    let mut status = 0;
    // SAFETY: `status` is a place for the status.
    unsafe { libc::waitpid(pid, &raw mut status, 0) };
    assert_eq!(status, 0);
    let again = open(&file);
    (again.emit)(10);
    close(again);
    println!("alive");
}
