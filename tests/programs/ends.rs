//! A traced program that ends in some way: `ends HOW`. Events are numbered in each thread.

use std::cell::Cell;
use std::ffi::c_void;
use std::process::exit;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use std::{mem, ptr, thread};

use ringmark::event;

static THREADS: AtomicU64 = AtomicU64::new(0);
/// Threads that have emitted.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// Events of all threads.
static EMITTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static THREAD: u64 = THREADS.fetch_add(1, Relaxed);
    static SEQ: Cell<u64> = const { Cell::new(0) };
    static WHO: Cell<u64> = const { Cell::new(0) };
}

fn emit(events: u64) {
    let thread = THREAD.with(|thread| *thread);
    emit_as(thread, events);
}

/// Also where thread locals with destructors are gone.
fn emit_as(thread: u64, events: u64) {
    EMITTED.fetch_add(events, Relaxed);
    for _ in 0..events {
        let seq = SEQ.replace(SEQ.get() + 1);
        event!("ends.tick", thread = thread, seq = seq);
    }
}

/// A thread panics behind a span that is open.
fn panic() {
    std::panic::set_hook(Box::new(|_| ()));
    let body = || {
        emit(100);
        panic!("as planned");
    };
    assert!(thread::spawn(body).join().is_err());
    emit(100);
}

/// Emits from the hook of a panic, and from what is dropped while the panic unwinds.
fn unwinding() {
    std::panic::set_hook(Box::new(|_| emit(10)));
    let body = || {
        emit(10);
        WHO.set(THREAD.with(|thread| *thread));
        let _dropped = EmitsWhenDropped;
        panic!("as planned");
    };
    for _ in 0..20 {
        assert!(thread::spawn(body).join().is_err());
    }
}

// Their unwinding goes through our frames, which hold nothing to be dropped.
unsafe extern "C-unwind" {
    fn pthread_exit(value: *mut c_void) -> !;
    fn pthread_testcancel();
}

extern "C-unwind" fn leaves(_: *mut c_void) -> *mut c_void {
    emit(10);
    // SAFETY: no frame of this thread holds anything to be dropped.
    unsafe { pthread_exit(ptr::null_mut()) }
}

extern "C-unwind" fn is_cancelled(_: *mut c_void) -> *mut c_void {
    loop {
        emit(10);
        // SAFETY: as above.
        unsafe { pthread_testcancel() };
    }
}

type Body = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// Threads that the standard library knows nothing of, ended by themselves or by others.
fn threads_of_c(body: Body, cancel: bool) {
    // SAFETY: the same function pointer; that unwinding may leave it is what C allows here.
    let body: extern "C" fn(*mut c_void) -> *mut c_void = unsafe { mem::transmute(body) };
    for _ in 0..20 {
        let mut thread: libc::pthread_t = 0;
        // SAFETY: a place for the thread; the body takes no argument.
        let made =
            unsafe { libc::pthread_create(&raw mut thread, ptr::null(), body, ptr::null_mut()) };
        assert_eq!(made, 0);
        if cancel {
            thread::sleep(Duration::from_millis(1));
            // SAFETY: a thread that was not joined yet.
            assert_eq!(unsafe { libc::pthread_cancel(thread) }, 0);
        }
        // SAFETY: as above.
        assert_eq!(unsafe { libc::pthread_join(thread, ptr::null_mut()) }, 0);
    }
    println!("{}", EMITTED.load(Relaxed));
}

/// A thread ends the process while others emit.
fn exit_from_thread() {
    for _ in 0..3 {
        thread::spawn(|| {
            emit(10);
            STARTED.fetch_add(1, Relaxed);
            loop {
                emit(10);
                thread::sleep(Duration::from_micros(50));
            }
        });
    }
    let body = || {
        while STARTED.load(Relaxed) < 3 {
            thread::sleep(Duration::from_millis(1));
        }
        thread::sleep(Duration::from_millis(20));
        emit(100);
        exit(0);
    };
    let _ = thread::spawn(body).join();
}

struct EmitsWhenDropped;

impl Drop for EmitsWhenDropped {
    fn drop(&mut self) {
        emit_as(WHO.get(), 10);
    }
}

/// Destructors of thread locals emit; those made before the thread's first event, and after it.
fn thread_locals() {
    thread_local!(static EARLY: EmitsWhenDropped = const { EmitsWhenDropped });
    thread_local!(static LATE: EmitsWhenDropped = const { EmitsWhenDropped });
    for thread in 0..20_u64 {
        let body = move || {
            WHO.set(thread);
            EARLY.with(|_| ());
            emit_as(thread, 10);
            LATE.with(|_| ());
        };
        thread::spawn(body).join().expect("a thread");
    }
}

extern "C" fn on_key(_value: *mut c_void) {
    emit_as(u64::MAX, 10);
}

/// The destructor of a C thread key that runs behind the one that gives the ring back.
fn late_key() {
    static KEY: AtomicU32 = AtomicU32::new(0);
    let mut key = 0;
    // SAFETY: a place for the key, and a destructor that lives as long as the program.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(on_key)) };
    assert_eq!(made, 0);
    KEY.store(key, Relaxed);
    for thread in 0..20 {
        let body = move || {
            emit_as(thread, 10);
            let value = ptr::without_provenance(1);
            // SAFETY: the key was made above; its destructor does not look at the value.
            unsafe { libc::pthread_setspecific(KEY.load(Relaxed), value) };
        };
        thread::spawn(body).join().expect("a thread");
    }
}

extern "C" fn at_exit() {
    emit(10);
}

fn register_at_exit() {
    // SAFETY: a function that lives as long as the program.
    assert_eq!(unsafe { libc::atexit(at_exit) }, 0);
}

/// Prints how many events there were: no thread emits any more.
extern "C" fn tell() {
    println!("{}", EMITTED.load(Relaxed));
}

/// Emits long after the exit began, then has the other thread stop.
extern "C" fn late() {
    thread::sleep(Duration::from_millis(100));
    emit(100);
    STARTED.store(0, Relaxed);
    while STARTED.load(Relaxed) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
}

/// The only events, after the session's end.
extern "C" fn late_only() {
    thread::sleep(Duration::from_millis(30));
    emit(100);
}

/// Handlers that were registered before the session run behind its good-bye, the first last.
fn register_late(late: extern "C" fn()) {
    for handler in [tell, late] {
        // SAFETY: a function that lives as long as the program.
        assert_eq!(unsafe { libc::atexit(handler) }, 0);
    }
}

/// A thread emits from now on until a handler of the exit, which begins at the end of standard
/// input, stops it.
fn late_exit() {
    STARTED.store(1, Relaxed);
    thread::spawn(|| {
        while STARTED.load(Relaxed) == 1 {
            emit(1);
            thread::sleep(Duration::from_millis(2));
        }
        STARTED.store(2, Relaxed);
    });
    emit(1);
    let read = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    read.expect("standard input");
    emit(1);
}

fn main() {
    let how = std::env::args().nth(1).expect("a way");
    match how.as_str() {
        "atexit-before" => register_at_exit(),
        "late-exit" => register_late(late),
        "late-only" => register_late(late_only),
        _ => {}
    }
    ringmark::start_from_env();
    match how.as_str() {
        "panic" => panic(),
        "unwind" => unwinding(),
        "pthread-exit" => threads_of_c(leaves, false),
        "pthread-cancel" => threads_of_c(is_cancelled, true),
        "exit" => exit_from_thread(),
        "tls" => thread_locals(),
        "key" => late_key(),
        "atexit-before" => emit(10),
        "late-exit" => late_exit(),
        "late-only" => {}
        "atexit" => {
            register_at_exit();
            emit(10);
        }
        "abort" => {
            emit(100);
            std::process::abort();
        }
        _ => panic!("unknown way {how}"),
    }
}
