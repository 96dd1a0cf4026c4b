//! A traced program with a fault of its own: `own_sigbus default|plain|siginfo`. It emits, waits for
//! a line of its input, emits again, and then touches a page of a file of its own that it has cut.
//! With a handler of its own, on a stack of its own, it mends the page there and says what it saw.

use std::ffi::{c_int, c_void};
use std::fs::OpenOptions;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use ringmark::event;

const PAGE: usize = 4096;
const STACK_BYTES: usize = 64 << 10;

static FAULTS: AtomicUsize = AtomicUsize::new(0);
static ADDRESS: AtomicUsize = AtomicUsize::new(0);
static STACK: AtomicUsize = AtomicUsize::new(0);
static IS_ON_STACK: AtomicBool = AtomicBool::new(false);
/// Where the fault is to be.
static MAP: AtomicUsize = AtomicUsize::new(0);

extern "C" fn siginfo(signal: c_int, info: *mut libc::siginfo_t, _context: *mut c_void) {
    // SAFETY: the kernel hands over what SA_SIGINFO promises.
    let info = unsafe { &*info };
    // SAFETY: SIGBUS carries an address.
    let address = unsafe { info.si_addr() };
    ADDRESS.store(address as usize, Relaxed);
    plain(signal);
}

extern "C" fn plain(_signal: c_int) {
    let here = ptr::from_ref(&_signal) as usize;
    let stack = STACK.load(Relaxed);
    IS_ON_STACK.store((stack..stack + STACK_BYTES).contains(&here), Relaxed);
    FAULTS.fetch_add(1, Relaxed);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let page = MAP.load(Relaxed) as *mut c_void;
    // SAFETY: in the place of our own page, whose file has none any more.
    unsafe { libc::mmap(page, PAGE, rights, flags, -1, 0) };
}

fn handle_faults(how: &str) {
    let handler = match how {
        "plain" => plain as extern "C" fn(c_int) as usize,
        "siginfo" => siginfo as extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) as usize,
        _ => return,
    };
    let stack: &'static mut [u8] = vec![0; STACK_BYTES].leak();
    STACK.store(stack.as_ptr() as usize, Relaxed);
    let alternate = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: STACK_BYTES,
    };
    // SAFETY: memory of this size that lives for ever.
    unsafe { libc::sigaltstack(&raw const alternate, ptr::null_mut()) };
    // SAFETY: all zeros is an empty mask and no flags.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = handler;
    action.sa_flags = libc::SA_ONSTACK;
    if how == "siginfo" {
        action.sa_flags |= libc::SA_SIGINFO;
    }
    // SAFETY: the action is whole; the handler does what handlers may.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut()) };
}

/// A page of a file that has lost it.
fn cut_page() -> *mut u8 {
    let path = std::env::temp_dir().join(format!("own-sigbus-{}", std::process::id()));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).open(&path);
    let file = file.expect("a file");
    std::fs::remove_file(&path).expect("its removal");
    file.set_len(PAGE as u64).expect("a page");
    let rights = libc::PROT_READ | libc::PROT_WRITE;
    let fd = file.as_raw_fd();
    // SAFETY: a new shared mapping of a file that has the page.
    let page = unsafe { libc::mmap(ptr::null_mut(), PAGE, rights, libc::MAP_SHARED, fd, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    file.set_len(0).expect("a cut");
    page.cast()
}

fn emit() {
    for seq in 0..20_000_u64 {
        event!("own.tick", seq = seq);
    }
}

fn main() {
    let how = std::env::args().nth(1).expect("default, plain or siginfo");
    handle_faults(&how);
    ringmark::start_from_env();
    emit();
    std::io::stdin()
        .read_line(&mut String::new())
        .expect("a line");
    emit();
    println!("emitted, faults={}", FAULTS.load(Relaxed));
    let page = cut_page();
    MAP.store(page as usize, Relaxed);
    let place = page.wrapping_add(8);
    // SAFETY: one byte of a mapping; without a handler it ends the process, which is the point.
    unsafe { place.write_volatile(1) };
    emit();
    println!(
        "faults={} on_stack={} right_address={}",
        FAULTS.load(Relaxed),
        IS_ON_STACK.load(Relaxed),
        ADDRESS.load(Relaxed) == page as usize + 8,
    );
}
