//! What a process can do against others that truncate the file it has mapped: a handler for SIGBUS
//! that puts private, zeroed memory in the place of a page that is gone, and remembers it.
//!
//! Opt-in, because a program's signals are its own: a producer asks for it by an option, a reader
//! by calling [`install`]. Only faults inside the mappings of this crate are handled. Every other
//! one goes to the handler that was there before, or ends the process as it would have. A program
//! that installs its own handler later, and does not pass faults on to this one, loses the
//! protection.
//!
//! ```text
//!  touch ─▶ SIGBUS ─▶ in a guarded region? ── yes ─▶ map zeros there, count it ─▶ touch again
//!                              │ no
//!                              ▼
//!           the handler before, with its own flags ── none ─▶ default action: the process ends
//! ```
//!
//! What it does not do: it saves no data. A producer goes on writing into memory that no reader
//! sees, and a reader has copied zeros; both ask [`Guarded::is_broken`] and stop.
//!
//! # Invariants
//!
//! 1. A region whose `start` is an address describes a mapping of this crate that is still there:
//!    [`Guarded`] is dropped before its mapping.
//! 2. `PREVIOUS` is written by one thread, before this handler is installed, and never again.
//! 3. The kernel calls `handle` with what SA_SIGINFO promises.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize};

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

/// Mappings that can be guarded at once; more are not.
const REGIONS_MAX: usize = 1 << 16;

/// A guarded mapping. Free while `start` is 0, being changed while it is `usize::MAX`.
///
/// Relaxed is enough: a thread that touches a mapping has learned its address from the thread that
/// registered it before, and the handler runs on the thread that touched.
struct Region {
    start: AtomicUsize,
    bytes: AtomicUsize,
    /// Pages that were replaced since it was registered.
    replaced: AtomicUsize,
}

static REGIONS: [Region; REGIONS_MAX] = [const {
    Region {
        start: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
        replaced: AtomicUsize::new(0),
    }
}; REGIONS_MAX];

/// Regions in use lie below this.
static REGIONS_USED: AtomicUsize = AtomicUsize::new(0);

const ABSENT: u32 = 0;
const INSTALLING: u32 = 1;
const INSTALLED: u32 = 2;
static STATE: AtomicU32 = AtomicU32::new(ABSENT);

/// What handled SIGBUS before: written once, before the handler that reads it is installed.
struct Previous(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: invariant 2: written by the thread that goes from ABSENT to INSTALLING, read afterwards.
unsafe impl Sync for Previous {}

static PREVIOUS: Previous = Previous(UnsafeCell::new(MaybeUninit::zeroed()));

/// Installs the handler, once in a process: further calls change nothing. `false`: the system
/// refused it. Mappings that were made before stay unguarded.
pub fn install() -> bool {
    match STATE.compare_exchange(ABSENT, INSTALLING, Relaxed, Relaxed) {
        Ok(_) => {
            let done = replace_action();
            STATE.store(if done { INSTALLED } else { ABSENT }, Relaxed);
            done
        }
        Err(_) => {
            while STATE.load(Relaxed) == INSTALLING {
                std::thread::yield_now();
            }
            is_installed()
        }
    }
}

/// Whether mappings that are made now will be guarded. That the handler is still the process's
/// handler is not looked at.
#[must_use]
pub fn is_installed() -> bool {
    STATE.load(Relaxed) == INSTALLED
}

fn replace_action() -> bool {
    // Asked here for the first time, so that the handler need not.
    let _ = rustix::param::page_size();
    let place = PREVIOUS.0.get().cast::<libc::sigaction>();
    // SAFETY: asks for the present action; invariant 2: the place is this thread's.
    if unsafe { libc::sigaction(libc::SIGBUS, core::ptr::null(), place) } != 0 {
        return false;
    }
    // SAFETY: just written.
    let mut action = unsafe { place.read() };
    // A handler that was there runs under its own mask, and on the stack that it wanted.
    let kept = if is_no_handler(action.sa_sigaction) {
        libc::SA_ONSTACK | libc::SA_RESTART
    } else {
        action.sa_flags & (libc::SA_NODEFER | libc::SA_RESTART | libc::SA_ONSTACK)
    };
    let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) = handle;
    action.sa_sigaction = handler as usize;
    action.sa_flags = kept | libc::SA_SIGINFO;
    // SAFETY: the action is complete; the handler is async-signal-safe.
    unsafe { libc::sigaction(libc::SIGBUS, &raw const action, core::ptr::null_mut()) == 0 }
}

extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: invariant 3.
    let fault = unsafe { fault_address(info) };
    if !fault.is_some_and(mend) {
        pass_on(signal, info, context);
    }
}

/// The address, if the kernel sent the signal for an access to a page that its file does not have.
///
/// # Safety
/// `info` must be what a handler got.
unsafe fn fault_address(info: *const libc::siginfo_t) -> Option<usize> {
    // SAFETY: the caller promises it.
    let info = unsafe { &*info };
    // SAFETY: SIGBUS with one of the kernel's codes carries an address; with others it is unused.
    let address = unsafe { info.si_addr() };
    (info.si_code == libc::BUS_ADRERR).then_some(address as usize)
}

/// Puts zeroed memory in the place of the page at `address`, if that is guarded. Async-signal-safe:
/// it reads atomics and makes one system call.
fn mend(address: usize) -> bool {
    let regions = &REGIONS[..REGIONS_USED.load(Relaxed).min(REGIONS_MAX)];
    let Some(region) = regions.iter().find(|region| region.holds(address)) else {
        return false;
    };
    region.replaced.fetch_add(1, Relaxed);
    let page = rustix::param::page_size();
    let start = address & !(page - 1);
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: invariant 1: the page lies in a mapping of this crate, whose words are atomics that
    // may hold anything; its file has no such page any more.
    unsafe { mmap_anonymous(start as *mut c_void, page, protection, flags) }.is_ok()
}

fn is_no_handler(action: usize) -> bool {
    matches!(action, libc::SIG_DFL | libc::SIG_IGN)
}

/// The handler that was there wanted to be called once (SA_RESETHAND), and was.
static IS_RESET: AtomicBool = AtomicBool::new(false);

/// Does what would have been done without this handler: calls the one before as it was installed,
/// ignores, or ends the process.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let previous: *const libc::sigaction = PREVIOUS.0.get().cast();
    // SAFETY: invariant 2: written before this handler was installed.
    let previous = unsafe { &*previous };
    let handler = if IS_RESET.load(Relaxed) {
        libc::SIG_DFL
    } else {
        previous.sa_sigaction
    };
    IS_RESET.fetch_or(previous.sa_flags & libc::SA_RESETHAND != 0, Relaxed);
    // SAFETY: invariant 3.
    let is_sent = is_sent(unsafe { (*info).si_code });
    match handler {
        libc::SIG_IGN if is_sent => {}
        libc::SIG_DFL | libc::SIG_IGN => end(signal, info, is_sent),
        address if previous.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: installed by the program with SA_SIGINFO, so it has this type.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { core::mem::transmute(address) };
            handler(signal, info, context);
        }
        address => {
            // SAFETY: installed by the program without SA_SIGINFO, so it has this type.
            let handler: extern "C" fn(c_int) = unsafe { core::mem::transmute(address) };
            handler(signal);
        }
    }
}

/// Whether the signal was sent, and is no fault of the thread's own: a fault comes again at the
/// same instruction as long as nothing changes, a signal that was sent does not.
fn is_sent(code: c_int) -> bool {
    /// The kernel found broken memory that no thread was reading.
    const BUS_MCEERR_AO: c_int = 5;
    code <= 0 || code == BUS_MCEERR_AO
}

/// Lets the signal end the process, with the default action: a fault comes again when the handler
/// returns, and a signal that was sent is sent again with the same content.
fn end(signal: c_int, info: *const libc::siginfo_t, is_sent: bool) {
    // SAFETY: all zero bytes are the default action.
    let default: libc::sigaction = unsafe { core::mem::zeroed() };
    // SAFETY: the action is complete.
    unsafe { libc::sigaction(signal, &raw const default, core::ptr::null_mut()) };
    if is_sent {
        let process = rustix::process::getpid().as_raw_nonzero().get();
        let thread = rustix::thread::gettid().as_raw_nonzero().get();
        // SAFETY: to this thread, where it waits until the handler returns.
        unsafe { libc::syscall(libc::SYS_rt_tgsigqueueinfo, process, thread, signal, info) };
    }
}

impl Region {
    fn holds(&self, address: usize) -> bool {
        let start = self.start.load(Relaxed);
        start != 0 && address.wrapping_sub(start) < self.bytes.load(Relaxed)
    }
}

/// Keeps a mapping guarded until it is dropped, which must be before the mapping is unmapped.
#[derive(Debug)]
pub struct Guarded {
    region: usize,
}

impl Guarded {
    /// Guards the mapping of `bytes` bytes at `start`. `None`: the handler is not installed, or
    /// 65536 mappings are guarded already. Takes no lock: threads may map at the same time.
    #[must_use]
    pub fn new(start: usize, bytes: usize) -> Option<Self> {
        if !is_installed() || start == 0 {
            return None;
        }
        let region = REGIONS.iter().position(|region| {
            let taken = region
                .start
                .compare_exchange(0, usize::MAX, Relaxed, Relaxed);
            taken.is_ok()
        })?;
        REGIONS_USED.fetch_max(region + 1, Relaxed);
        REGIONS[region].replaced.store(0, Relaxed);
        REGIONS[region].bytes.store(bytes, Relaxed);
        REGIONS[region].start.store(start, Relaxed);
        Some(Self { region })
    }

    /// Whether a page was gone and has been replaced: what the mapping holds is no longer the file.
    /// It stays so, because the replaced page is never mapped to the file again.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        REGIONS[self.region].replaced.load(Relaxed) != 0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        REGIONS[self.region].bytes.store(0, Relaxed);
        REGIONS[self.region].start.store(0, Relaxed);
    }
}
