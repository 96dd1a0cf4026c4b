//! The helper thread: refills the pool of warm rings and answers requests. There is none with
//! control off.
//!
//! # Invariants
//!
//! 1. All zero bytes are a value of the C types here: thread attributes and signal sets.
//! 2. A pointer that a C function gets is to a local of its caller, initialised where the function
//!    reads it, or null where that is allowed. No function here keeps one.
//! 3. The word of a [`Helper`] is leaked: it is there for the helper thread as long as the process.
//! 4. What is set of a thread (name, signals, policy) is set of the calling one.
//! 5. The process is ended only after all its other threads ended, and as the first of them did.

use core::ffi::c_void;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use ringmark_format::session_text::{SessionAnswer, SessionRequest, Switch, TypePattern};
use ringmark_format::span_condition::SpanCondition;
use ringmark_format::tracer_text::UNKNOWN_REQUEST;
use ringmark_ring::mailbox::{Answer, Mailbox};
use ringmark_ring::small_file;
use rustix::io::Errno;
use rustix::thread::{NanosleepRelativeResult, futex, nanosleep};

use super::core::Core;
use super::warm::{self, futex_half};
use super::{memory, registry, span_gate};
use crate::setup::filter::{Directives, EXPECTED, Pattern};

/// Stack of the helper thread; only what is used takes memory.
const STACK_BYTES: usize = 256 << 10;

/// A helper thread that waits for its session. Dropped: there will be none, it ends.
pub(super) struct Helper {
    word: &'static AtomicU32,
}

/// Value of a [`Helper`]'s word: wait.
const WAIT: u32 = 0;
/// There is a session.
const SERVE: u32 = 1;
/// There will be no session.
const LEAVE: u32 = 2;

impl Helper {
    /// Starts the helper thread with all signals blocked: before the session is there, whose header
    /// says whether requests are answered.
    pub(super) fn spawn() -> io::Result<Self> {
        let word: &'static AtomicU32 = Box::leak(Box::new(AtomicU32::new(WAIT)));
        let old = block_signals();
        let started = start_thread(word);
        restore_signals(&old);
        match started {
            0 => Ok(Self { word }),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Lets it serve the session of this process.
    pub(super) fn serve(self) {
        self.tell(SERVE);
        core::mem::forget(self);
    }

    fn tell(&self, what: u32) {
        self.word.store(what, Relaxed);
        let _ = futex::wake(self.word, futex::Flags::empty(), 1);
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        self.tell(LEAVE);
    }
}

/// Starts the thread without the standard library, whose threads first map a stack for signal
/// handlers, and panic in sight of the program if they get none. Returns the error number, or 0.
fn start_thread(word: &'static AtomicU32) -> i32 {
    // SAFETY: invariant 1.
    let mut attributes: libc::pthread_attr_t = unsafe { core::mem::zeroed() };
    // SAFETY: invariant 2: a local.
    match unsafe { libc::pthread_attr_init(&raw mut attributes) } {
        0 => {}
        error => return error,
    }
    let detached = libc::PTHREAD_CREATE_DETACHED;
    // SAFETY: invariant 2: the attributes are initialised.
    unsafe { libc::pthread_attr_setdetachstate(&raw mut attributes, detached) };
    // SAFETY: invariant 2: as above.
    unsafe { libc::pthread_attr_setstacksize(&raw mut attributes, STACK_BYTES) };
    let mut thread: libc::pthread_t = 0;
    let argument = ptr::from_ref(word).cast_mut().cast();
    // SAFETY: invariants 2 and 3: attributes and thread are locals; the argument lives for ever.
    let created =
        unsafe { libc::pthread_create(&raw mut thread, &raw const attributes, helper, argument) };
    // SAFETY: invariant 2: initialised, and not used again.
    unsafe { libc::pthread_attr_destroy(&raw mut attributes) };
    created
}

extern "C" fn helper(word: *mut c_void) -> *mut c_void {
    // SAFETY: invariant 4: the name of this thread; the kernel copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"ringmark".as_ptr()) };
    // The reader may wait for its answers.
    crate::thread_block::never_wait();
    // SAFETY: invariant 3: `start_thread` handed over a reference that lives for ever.
    let word = unsafe { word.cast::<AtomicU32>().as_ref() };
    if let Some(core) = word.and_then(session_to_serve) {
        if core.options.guard {
            let_faults_through();
        }
        if let Some(mailbox) = core.file.mailbox() {
            // Who caches what is on may be code of the program; its panic ends here.
            let _ = catch_unwind(AssertUnwindSafe(|| serve(core, mailbox)));
        }
    }
    ptr::null_mut()
}

fn session_to_serve(word: &AtomicU32) -> Option<&'static Core> {
    loop {
        match word.load(Relaxed) {
            SERVE => {
                if let Some(core) = Core::current() {
                    return Some(core);
                }
            }
            LEAVE => return None,
            _ if !sleep_on(word, WAIT) => return None,
            _ => {}
        }
    }
}

fn block_signals() -> libc::sigset_t {
    // SAFETY: invariant 1.
    let mut all: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: invariant 1.
    let mut old: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: invariant 2: a local.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: invariants 2 and 4: both sets are locals; the mask is this thread's.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut old) };
    old
}

/// A fault whose signal is blocked ends the process, whatever handler there is: this thread touches
/// the file, too, and needs the guard.
fn let_faults_through() {
    // SAFETY: invariant 1.
    let mut faults: libc::sigset_t = unsafe { core::mem::zeroed() };
    // SAFETY: invariant 2: a local.
    unsafe { libc::sigaddset(&raw mut faults, libc::SIGBUS) };
    // SAFETY: invariants 2 and 4; what was blocked before is of no interest.
    unsafe { libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const faults, ptr::null_mut()) };
}

fn restore_signals(old: &libc::sigset_t) {
    // SAFETY: invariants 2 and 4: `old` came from `block_signals`.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, ptr::from_ref(old), ptr::null_mut()) };
}

/// A batch thread is never run in place of the thread that woke it.
fn stay_behind() {
    let priority = libc::sched_param { sched_priority: 0 };
    // SAFETY: invariant 4: its policy; without permission nothing changes.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const priority) };
}

fn serve(core: &'static Core, mailbox: Mailbox<'static>) {
    stay_behind();
    let mut seen = mailbox.answered();
    warm::refill(core);
    let mut rounds = 0_u32;
    while !core.file.closed() {
        rounds += 1;
        if rounds.is_multiple_of(ROUNDS_ALONE)
            && let Some(status) = alone()
        {
            return end_as(status);
        }
        let requested = mailbox.requested();
        if requested != seen {
            if mailbox.take(requested) {
                let answer = answer(core, &mailbox.request_text());
                mailbox.answer(requested, &answer);
            } else {
                mailbox.pass_over(requested);
            }
            seen = requested;
            let _ = futex::wake(futex_half(&mailbox), futex::Flags::empty(), i32::MAX as u32);
        }
        if warm::was_used() {
            warm::refill(core);
        }
        let is_wanted = || warm::is_used() || mailbox.requested() != seen;
        if !memory::allocate_rest(core, is_wanted) {
            continue;
        }
        registry::idle();
        if !sleep_on(futex_half(&mailbox), seen as u32) {
            break;
        }
    }
}

/// Sleeps until the word changes or a wake-up comes; looks again after a while, should one be
/// missed. `false`: this thread can no longer sleep (a filter of system calls came over the whole
/// process), and must not burn a processor instead.
fn sleep_on(word: &AtomicU32, seen: u32) -> bool {
    let pause = futex::Timespec {
        tv_sec: 0,
        tv_nsec: 100_000_000,
    };
    match futex::wait(word, futex::Flags::empty(), seen, Some(&pause)) {
        Ok(()) | Err(Errno::INTR | Errno::TIMEDOUT) => true,
        Err(Errno::AGAIN) if word.load(Relaxed) != seen => true,
        Err(_) => !matches!(nanosleep(&pause), NanosleepRelativeResult::Err(_)),
    }
}

/// Rounds, of a tenth of a second if nothing happens, after which the helper asks whether it is alone.
const ROUNDS_ALONE: u32 = 5;

/// If all threads but this one have ended: how the first one did, as `wait` would say it. A process
/// must not live on for the helper's sake. (One that calls `exit` never comes to this.)
fn alone() -> Option<i32> {
    let stat = small_file::read("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold anything, also parentheses: fields start after the last one.
    let at = stat.iter().rposition(|byte| *byte == b')')? + 2;
    let fields = core::str::from_utf8(stat.get(at..)?).ok()?;
    let mut fields = fields.split_ascii_whitespace();
    // State of the first thread, which stays as a zombie; number of threads; how it ended.
    let is_alone = fields.next() == Some("Z") && fields.nth(16) == Some("2");
    let status = fields.nth(31).and_then(|text| text.parse().ok());
    is_alone.then_some(status.unwrap_or(0))
}

/// Ends as the first thread did: the last thread to go says how the process ended.
fn end_as(status: i32) {
    let signal = status & 0x7F;
    if signal != 0 {
        let own = std::process::id() as libc::pid_t;
        // SAFETY: invariant 5: by the signal that ended the first thread.
        unsafe { libc::kill(own, signal) };
    }
    if status != 0 {
        // SAFETY: invariant 5: this thread is the last one and holds nothing.
        unsafe { libc::syscall(libc::SYS_exit, status >> 8) };
    }
}

/// Carries out a request.
fn answer(core: &Core, request: &str) -> Answer {
    let result = match SessionRequest::parse(request) {
        Ok(Some(known)) => do_request(core, known).map(|answer| answer.to_string()),
        Ok(None) => {
            warm::for_threads(core);
            answer_of_library(request)
        }
        Err(wrong) => Err(wrong.to_string()),
    };
    match result {
        Ok(text) => Answer { status: 0, text },
        Err(text) => Answer { status: 1, text },
    }
}

/// Passes a request to the library that answers such requests.
fn answer_of_library(request: &str) -> Result<String, String> {
    let word = request.split_whitespace().next().unwrap_or_default();
    let answer =
        registry::who_answers(word).ok_or_else(|| format!("{UNKNOWN_REQUEST} {word:?}"))?;
    answer(request)
}

fn do_request(core: &Core, request: SessionRequest<'_>) -> Result<SessionAnswer<'static>, String> {
    match request {
        SessionRequest::Ping => Ok(SessionAnswer::Pong),
        SessionRequest::Filter(directives) => set_filter(core, directives),
        SessionRequest::Switch(switch, types) => set_pattern(core, switch, types),
    }
}

fn set_filter(core: &Core, text: &str) -> Result<SessionAnswer<'static>, String> {
    let wrong = |found: &str| format!("filter: found {found:?}, expected {EXPECTED}");
    let directives = Directives::parse(text).map_err(|error| wrong(&error.found))?;
    if let Some(expected) = span_gate::refusal(core.clock, directives.conditions().count()) {
        return Err(format!("filter: found {text:?}, expected {expected}"));
    }
    let on = registry::apply_directives(core, directives);
    registry::tell();
    Ok(SessionAnswer::Enabled(on as u64))
}

fn pattern(switch: Switch, types: TypePattern<'_>) -> Result<Pattern, String> {
    let condition = |text| {
        let wrong = || format!("inside: found {text:?}, expected SPAN[FIELD=VALUE]");
        SpanCondition::parse(text).ok_or_else(wrong)
    };
    if switch == Switch::Disable && types.inside.is_some() {
        return Err("inside: found with disable, expected with enable".to_owned());
    }
    Ok(Pattern {
        on: switch == Switch::Enable,
        name: types.name.to_owned(),
        level: types.level,
        category: types.category.map(str::to_owned),
        inside: types.inside.map(condition).transpose()?,
    })
}

fn set_pattern(
    core: &Core,
    switch: Switch,
    types: TypePattern<'_>,
) -> Result<SessionAnswer<'static>, String> {
    let pattern = pattern(switch, types)?;
    if let Some(condition) = &pattern.inside {
        if span_gate::is_without_spans() {
            return Ok(SessionAnswer::NoneMatches(Vec::new()));
        }
        let conditions = registry::conditions_with(condition);
        if let Some(expected) = span_gate::refusal(core.clock, conditions) {
            return Err(format!(
                "inside: found {:?}, expected {expected}",
                condition.to_string()
            ));
        }
    }
    let matched = registry::apply_pattern(core, pattern);
    registry::tell();
    Ok(match matched {
        0 => SessionAnswer::NoneMatches(closest(types.name)),
        matched => SessionAnswer::Matched(matched as u64),
    })
}

/// Up to three names that share the longest beginning with `pattern`.
fn closest(pattern: &str) -> Vec<&'static str> {
    let common = |name: &str| {
        name.bytes()
            .zip(pattern.bytes())
            .take_while(|(a, b)| a == b)
            .count()
    };
    let names = registry::names();
    let mut best: Vec<&'static str> = Vec::new();
    for _ in 0..3 {
        let others = names.iter().filter(|name| !best.contains(name));
        best.extend(others.max_by_key(|name| common(name)).copied());
    }
    best
}
