//! One run of the program under `ptrace`, with its calls counted and some of them denied.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::io::{Read, Seek};
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use super::client;

/// Offsets of the call's number and of its result in the tracee's registers.
const ORIG_RAX: usize = 15 * 8;
const RAX: usize = 10 * 8;
const RDI: usize = 14 * 8;
/// See `phases`.
const OPEN: i32 = -1001;
const CLOSE: i32 = -1002;
const ASK: i32 = -1003;
/// Signal of a stop at a system call.
const SYSTEM_CALL: i32 = libc::SIGTRAP | 0x80;

/// What ends a thread; and what the C library itself ends the process for, in any new thread.
const NOT_DENIED: [i64; 4] = [
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_rt_sigreturn,
    libc::SYS_rseq,
];

/// Which call fails.
pub(crate) struct Plan {
    pub(crate) at: u64,
    /// So do all later ones of the same kind.
    pub(crate) always: bool,
    pub(crate) error: i32,
    pub(crate) limit_ms: u64,
}

/// What became of a run.
#[derive(Default)]
pub(crate) struct Run {
    pub(crate) status: i32,
    pub(crate) timed_out: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
    /// Calls between the marks.
    pub(crate) calls: u64,
    pub(crate) helper_calls: u64,
    /// Number of the call that was denied.
    pub(crate) denied: Option<u64>,
    /// It was denied while the session started.
    pub(crate) denied_in_start: bool,
}

/// A thread of the program.
#[derive(Default, Clone, Copy)]
struct Task {
    in_call: bool,
    is_open: bool,
    is_helper: bool,
    /// What the call that it is in returns instead.
    result: Option<i64>,
}

struct Tracer<'p> {
    plan: &'p Plan,
    run: Run,
    tasks: HashMap<i32, Task>,
    is_set_up: bool,
    /// The start, and what the first thread emitted, are over.
    has_started: bool,
    signs: Arc<Signs>,
}

/// What tracer and client tell each other.
#[derive(Default)]
struct Signs {
    may_ask: AtomicBool,
    is_through: AtomicBool,
}

fn memory_file() -> File {
    // SAFETY: the name is a string; a new descriptor comes back.
    let fd = unsafe { libc::memfd_create(c"output".as_ptr(), libc::MFD_CLOEXEC) };
    assert!(fd >= 0, "memfd_create");
    // SAFETY: the descriptor is new and ours.
    unsafe { File::from_raw_fd(fd) }
}

fn text(mut file: File) -> String {
    let mut bytes = Vec::new();
    file.rewind().expect("a file");
    file.read_to_end(&mut bytes).expect("a file");
    String::from_utf8_lossy(&bytes).into_owned()
}

fn ptrace(request: libc::c_uint, task: i32, address: usize, data: i64) -> i64 {
    // SAFETY: the requests that are made here touch the tracee only.
    unsafe { libc::ptrace(request, task, address, data) }
}

fn be_traced() -> io::Result<()> {
    // SAFETY: makes the parent the tracer.
    match unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Runs the program once.
#[expect(
    clippy::zombie_processes,
    reason = "`follow` waits for all of its threads"
)]
pub(crate) fn run(plan: &Plan, command: &[String]) -> Run {
    let (output, errors) = (memory_file(), memory_file());
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]);
    program.stdout(output.try_clone().expect("a descriptor"));
    program.stderr(errors.try_clone().expect("a descriptor"));
    // SAFETY: one system call.
    unsafe { program.pre_exec(be_traced) };
    let child = program.spawn().expect("the program");
    let pid = child.id() as i32;
    let mut tracer = Tracer {
        plan,
        run: Run::default(),
        tasks: HashMap::from([(pid, Task::default())]),
        is_set_up: false,
        has_started: false,
        signs: Arc::default(),
    };
    let (is_over, signs) = (AtomicBool::new(false), tracer.signs.clone());
    let end = Instant::now() + Duration::from_millis(plan.limit_ms);
    thread::scope(|scope| {
        let watch = scope.spawn(|| kill_late(pid, end, &is_over));
        scope.spawn(|| client::serve(&signs.may_ask, &signs.is_through, &is_over));
        tracer.follow(pid);
        is_over.store(true, Relaxed);
        tracer.run.timed_out = watch.join().expect("the watch");
    });
    let mut run = tracer.run;
    (run.output, run.errors) = (text(output), text(errors));
    run
}

/// Kills the program when its time is over; says whether it did.
fn kill_late(pid: i32, end: Instant, is_over: &AtomicBool) -> bool {
    while !is_over.load(Relaxed) {
        if Instant::now() >= end {
            // SAFETY: a signal to our own child, not reaped yet: `is_over` would be set.
            unsafe { libc::kill(pid, libc::SIGKILL) };
            return true;
        }
        thread::sleep(Duration::from_millis(1));
    }
    false
}

impl Tracer<'_> {
    /// Until the program ends.
    fn follow(&mut self, pid: i32) {
        loop {
            let mut status = 0;
            // SAFETY: the status is written to a place of ours.
            let task = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL) };
            if task < 0 {
                return;
            }
            if !libc::WIFSTOPPED(status) {
                self.tasks.remove(&task);
                if task == pid {
                    self.run.status = status;
                    return;
                }
                continue;
            }
            let signal = match (libc::WSTOPSIG(status), status >> 16) {
                (SYSTEM_CALL, _) => {
                    self.at_call(task);
                    0
                }
                (libc::SIGTRAP, libc::PTRACE_EVENT_CLONE) => self.at_clone(task),
                (libc::SIGTRAP, 0) if !self.is_set_up => self.set_up(task),
                // The stop in which a new thread begins.
                (libc::SIGSTOP, _) => 0,
                (signal, _) => i64::from(signal),
            };
            ptrace(libc::PTRACE_SYSCALL, task, 0, signal);
        }
    }

    /// The program was loaded.
    fn set_up(&mut self, task: i32) -> i64 {
        self.is_set_up = true;
        let options =
            libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE | libc::PTRACE_O_EXITKILL;
        ptrace(libc::PTRACE_SETOPTIONS, task, 0, options.into());
        0
    }

    /// A thread that is made between the marks is the helper.
    fn at_clone(&mut self, task: i32) -> i64 {
        let mut new: libc::c_ulong = 0;
        let place = &raw mut new;
        ptrace(libc::PTRACE_GETEVENTMSG, task, 0, place as i64);
        let is_helper = self.tasks.get(&task).is_some_and(|task| task.is_open);
        let about = self.tasks.entry(new as i32).or_default();
        (about.is_open, about.is_helper) = (is_helper, is_helper);
        0
    }

    fn at_call(&mut self, task: i32) {
        let mut about = self.tasks.get(&task).copied().unwrap_or_default();
        about.in_call = !about.in_call;
        if about.in_call {
            self.enter(task, &mut about);
        } else if let Some(result) = about.result.take() {
            ptrace(libc::PTRACE_POKEUSER, task, RAX, result);
        }
        self.tasks.insert(task, about);
    }

    fn enter(&mut self, task: i32, about: &mut Task) {
        let number = ptrace(libc::PTRACE_PEEKUSER, task, ORIG_RAX, 0);
        if number == libc::SYS_getsid {
            match ptrace(libc::PTRACE_PEEKUSER, task, RDI, 0) as i32 {
                OPEN => about.is_open = true,
                CLOSE => {
                    about.is_open = false;
                    self.has_started = true;
                }
                ASK => {
                    self.signs.may_ask.store(true, Relaxed);
                    let answer = i64::from(self.signs.is_through.load(Relaxed));
                    about.result = Some(answer);
                }
                _ => {}
            }
            return;
        }
        if !about.is_open || NOT_DENIED.contains(&number) {
            return;
        }
        self.run.calls += 1;
        self.run.helper_calls += u64::from(about.is_helper);
        let is_kin = self.plan.always && self.run.denied == Some(number as u64);
        if self.run.calls == self.plan.at || is_kin {
            self.run.denied = Some(number as u64);
            self.run.denied_in_start |= !self.has_started;
            ptrace(libc::PTRACE_POKEUSER, task, ORIG_RAX, -1);
            about.result = Some(-i64::from(self.plan.error));
        }
    }
}
