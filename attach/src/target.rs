//! What the system says of the target before anything is done to it.

use std::fs;
use std::io;

use crate::error::LoadError;

/// A thread's line of `/proc/PID/status`.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines();
    lines.find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

/// What is asked of a thread again and again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Status {
    /// `R`, `S`, `D`, `T`, `t`, `Z`.
    pub(crate) state: char,
    pub(crate) tracer: i32,
    pub(crate) seccomp: u32,
    pub(crate) has_shadow_stack: bool,
    /// A signal waits that the thread does not block.
    pub(crate) has_signal: bool,
    group: i32,
    user: u32,
    /// Its capabilities, a bit for each.
    capabilities: u64,
}

impl Status {
    /// Whether it has a capability.
    pub(crate) fn may(&self, capability: u32) -> bool {
        self.capabilities >> capability & 1 == 1
    }
}

pub(crate) fn status(pid: i32, tid: i32) -> Option<Status> {
    let text = fs::read(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    let text = String::from_utf8_lossy(&text);
    let number = |name| field(&text, name)?.split_whitespace().next()?.parse().ok();
    let set = |name| field(&text, name).and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let pending = set("SigPnd").unwrap_or(0) | set("ShdPnd").unwrap_or(0);
    let unheard = set("SigBlk").unwrap_or(0) | set("SigIgn").unwrap_or(0);
    let features = field(&text, "x86_Thread_features").unwrap_or_default();
    Some(Status {
        state: field(&text, "State")?.chars().next()?,
        tracer: number("TracerPid").unwrap_or(0) as i32,
        seccomp: number("Seccomp").unwrap_or(0),
        has_shadow_stack: features.split_whitespace().any(|name| name == "shstk"),
        has_signal: pending & !unheard != 0,
        group: number("Tgid").unwrap_or(0) as i32,
        user: number("Uid").unwrap_or(0),
        capabilities: set("CapEff").unwrap_or(0),
    })
}

/// Number of the system call that the thread waits in.
pub(crate) fn call(pid: i32, tid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// All threads.
pub(crate) fn threads(pid: i32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task"));
    let names = entries.into_iter().flatten().flatten();
    names
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Refuses what can be seen to be refused. Nothing has been done to the target yet.
pub(crate) fn check(pid: i32) -> Result<(), LoadError> {
    let status = status(pid, pid).ok_or(LoadError::NoProcess { pid })?;
    let unsuitable = |reason| Err(LoadError::Unsuitable { pid, reason });
    if status.group != pid {
        return unsuitable("a thread, not a process");
    }
    if pid == std::process::id().cast_signed() {
        return unsuitable("this is the tool itself");
    }
    match status.state {
        'Z' | 'X' => return unsuitable("it has ended"),
        'T' => return unsuitable("stopped by a signal; let it go on first (SIGCONT)"),
        _ => {}
    }
    if status.tracer != 0 {
        let tracer = status.tracer;
        return Err(LoadError::TracedAlready { pid, tracer });
    }
    program(pid)
}

/// The program is of a kind that can be loaded into, as far as its file says.
fn program(pid: i32) -> Result<(), LoadError> {
    use std::io::Read;
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::PermissionDenied => not_permitted(pid),
        io::ErrorKind::NotFound => LoadError::Unsuitable {
            pid,
            reason: "a kernel thread: it has no program",
        },
        _ => LoadError::Failed {
            pid,
            what: "reading the head of its program",
            error,
        },
    };
    let mut head = [0; 20];
    let file = fs::File::open(format!("/proc/{pid}/exe"));
    let read = file.and_then(|mut file| file.read_exact(&mut head));
    read.map_err(refused)?;
    match (head[4], head[18]) {
        (2, 62) => Ok(()),
        (1, 3) => Err(LoadError::Unsuitable {
            pid,
            reason: "a 32-bit program",
        }),
        _ => Err(LoadError::Unsuitable {
            pid,
            reason: "not an x86-64 program",
        }),
    }
}

/// Why a file of `/proc/PID` could not be read.
pub(crate) fn unreadable(pid: i32, what: &'static str, error: io::Error) -> LoadError {
    let is_gone = error.raw_os_error() == Some(libc::ESRCH);
    match error.kind() {
        io::ErrorKind::NotFound => LoadError::NoProcess { pid },
        _ if is_gone => LoadError::NoProcess { pid },
        io::ErrorKind::PermissionDenied => not_permitted(pid),
        _ => LoadError::Failed { pid, what, error },
    }
}

/// Which processes Yama lets trace which; empty without Yama.
pub(crate) fn scope() -> String {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope");
    scope.unwrap_or_default().trim().to_owned()
}

/// Why the kernel may have refused.
pub(crate) fn not_permitted(pid: i32) -> LoadError {
    let scope = scope();
    let target = status(pid, pid).unwrap_or_default();
    let own = std::process::id().cast_signed();
    let user = status(own, own).unwrap_or_default().user;
    let reason = if target.user != user {
        format!("it belongs to user {}, we are user {user}", target.user)
    } else if !matches!(scope.as_str(), "" | "0") {
        format!("kernel.yama.ptrace_scope={scope}")
    } else {
        "it has more rights than we have, or is not dumpable".into()
    };
    LoadError::NotPermitted { pid, reason }
}
