//! What a thread waits for, in words: the descriptor's file or peer, the owner of the lock.

use crate::file_locks;
use crate::peers::Peers;
use crate::system_call::{Object, SystemCall, described};
use crate::target::Target;

/// Bits of a futex word that say who owns it, where the kernel looks at it (`FUTEX_TID_MASK`).
const OWNER: u32 = 0x3fff_ffff;
/// The operation of a futex call without its flags.
const OPERATION: u64 = 0x7f;
/// Operations that wait for a word to change.
const WAITS: [u64; 2] = [libc::FUTEX_WAIT as u64, libc::FUTEX_WAIT_BITSET as u64];
/// Operations that wait for the owner whom the word names.
const WAITS_FOR_OWNER: [u64; 2] = [libc::FUTEX_LOCK_PI as u64, 13];
/// From the word of a `pthread_mutex_t` to the thread that has it, in bytes.
const TO_OWNER: u64 = 8;

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Wait {
    /// The system call that it is in; `page fault`: none. Where that may not be read, what is known from outside.
    pub call: String,
    /// What that waits for; empty: it does not say.
    pub object: String,
}

impl Wait {
    /// `read pipe:[4711]`; a mutex says more than its system call.
    #[must_use]
    pub fn words(&self) -> String {
        match self.object.is_empty() {
            true => self.call.clone(),
            false if self.object.starts_with("mutex") => self.object.clone(),
            false => format!("{} {}", self.call, self.object),
        }
    }

    /// What a thread in that call waits for.
    pub(crate) fn of(call: &SystemCall, target: &Target, peers: &mut Peers) -> Self {
        let Some(number) = call.number else {
            return Self {
                call: "page fault".to_owned(),
                object: String::new(),
            };
        };
        let (name, object) = described(number);
        let object = match object {
            Object::Descriptor => descriptor(call.arguments[0], target, peers),
            Object::Lock(kind) => locked_file(kind, call, target, peers),
            Object::Futex => lock_owner(call, target),
            Object::Poll => polled(call, target, peers),
            Object::Time | Object::Named => String::new(),
        };
        Self { call: name, object }
    }

    /// What is known of a thread whose system call may not be read: the function of the kernel that it waits in, or at
    /// least how it waits. `None`: it runs.
    pub(crate) fn from_outside(tid: u32, target: &Target) -> Option<Self> {
        let inside = target
            .text(&format!("task/{tid}/wchan"))
            .unwrap_or_default();
        let call = match inside.trim() {
            "" | "0" => kind_of_wait(&target.text(&format!("task/{tid}/stat")).ok()?)?.to_owned(),
            function => format!("{function} (kernel)"),
        };
        let object = String::new();
        Some(Self { call, object })
    }
}

/// How a thread waits, by its line `stat`; `None`: it runs.
fn kind_of_wait(stat: &str) -> Option<&'static str> {
    // The name before the state may hold anything.
    match stat.rsplit_once(") ")?.1.chars().next()? {
        'S' => Some("something that may not be seen (sleeps)"),
        'D' => Some("something that may not be seen (disk sleep)"),
        'T' | 't' => Some("a signal to go on (stopped)"),
        _ => None,
    }
}

/// The file of a descriptor, or the peer of its socket.
fn descriptor(number: u64, target: &Target, peers: &mut Peers) -> String {
    // It is an int: the upper half of the register may hold anything.
    let number = number as u32;
    let Some(link) = target.link(&format!("fd/{number}")) else {
        return format!("descriptor {number}");
    };
    let link = link.to_string_lossy().into_owned();
    let socket = link
        .strip_prefix("socket:[")
        .and_then(|rest| rest.strip_suffix(']'));
    match socket.and_then(|inode| inode.parse().ok()) {
        Some(inode) => peers.of(inode, target).unwrap_or(link),
        None => match link.strip_prefix("anon_inode:") {
            Some(kind) => kind.trim_matches(['[', ']']).to_owned(),
            None => link,
        },
    }
}

/// The file whose lock a thread waits for, and who has it.
fn locked_file(kind: &str, call: &SystemCall, target: &Target, peers: &mut Peers) -> String {
    let file = descriptor(call.arguments[0], target, peers);
    let inode = target.inode(&format!("fd/{}", call.arguments[0] as u32));
    let owner = inode.and_then(|inode| file_locks::owner(kind, target.pid(), inode));
    let name = owner.and_then(|pid| Some((pid, Target::open(pid).ok()?.name_of(None)?)));
    name.map_or(file.clone(), |(pid, name)| {
        format!("{file} of {name}[{pid}]")
    })
}

/// The descriptors of `poll`: one by its file, more by their number.
fn polled(call: &SystemCall, target: &Target, peers: &mut Peers) -> String {
    match call.arguments[1] {
        0 => String::new(),
        1 => match target.read_u32(call.arguments[0]) {
            Some(number) => descriptor(number.into(), target, peers),
            None => "1 descriptor".to_owned(),
        },
        several => format!("{several} descriptors"),
    }
}

/// Who has the mutex that a thread waits for; empty: the word is no mutex that says so.
fn lock_owner(call: &SystemCall, target: &Target) -> String {
    let [address, operation, ..] = call.arguments;
    let operation = operation & OPERATION;
    let word = target.read_u32(address);
    let owner = match word {
        Some(word) if WAITS_FOR_OWNER.contains(&operation) => Some(word & OWNER),
        // 2: it is taken, and somebody waits. Other words, such as those of conditions, have no owner beside them.
        Some(2) if WAITS.contains(&operation) => target.read_u32(address.wrapping_add(TO_OWNER)),
        _ => None,
    };
    let owner = owner.filter(|tid| *tid != 0);
    let name = owner.and_then(|tid| Some((tid, target.name_of(Some(tid))?)));
    name.map_or_else(String::new, |(tid, name)| format!("mutex of {name}[{tid}]"))
}

#[cfg(test)]
mod tests {
    use super::kind_of_wait;

    #[test]
    fn the_state_stands_behind_a_name_that_may_hold_anything() {
        let kind = |state| kind_of_wait(&format!("7 (a) S (b) {state} 1 7 7 0 -1"));
        assert_eq!(
            kind("D"),
            Some("something that may not be seen (disk sleep)")
        );
        assert_eq!(kind("T"), Some("a signal to go on (stopped)"));
        assert_eq!(kind("R"), None);
        assert_eq!(kind_of_wait(""), None);
    }
}
