//! The nodes of all threads, in a list. Nodes are never unmapped; a new thread takes one over from
//! a thread that has ended.

use core::ptr;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU64};

use rustix::mm::{Advice, MapFlags, MprotectFlags, madvise, mprotect};

use super::thread_memory::{
    FRONT, GUARD_AT, LEFT, NODE_BYTES, Node, OpenCall, PAGE, PLACES, SENTINELS, Table,
};
use super::x86_64::{add, return_address};
use super::{own_memory, true_returns};

/// Calls of threads without a node that called no callback because one was running.
static NOT_CALLED: AtomicU64 = AtomicU64::new(0);

/// Head of the list of nodes.
static NODES: AtomicPtr<Node> = AtomicPtr::new(ptr::null_mut());

/// Nodes that are searched for one of an ended thread, the newest first.
const LOOKS_MAX: usize = 32;

impl Node {
    fn address(&self) -> u64 {
        ptr::from_ref(self) as u64
    }

    /// Address of the first place for a call.
    pub(super) fn first(&self) -> u64 {
        self.address() + FRONT as u64
    }

    /// Address of the last place, which stays free.
    pub(super) fn limit(&self) -> u64 {
        last_place(self.first())
    }

    /// Top of the stack for the slow way.
    pub(super) fn stack(&self) -> u64 {
        self.address() + NODE_BYTES as u64
    }

    /// By index: sentinels, open calls, free places, calls left without a return.
    fn call(&self, place: usize) -> &OpenCall {
        let first = (self.address() + size_of::<Self>() as u64) as *const OpenCall;
        debug_assert!(place < SENTINELS + PLACES + LEFT);
        // SAFETY: record invariants 1, 4 and 5; the index is below the number of places.
        unsafe { &*first.wrapping_add(place) }
    }

    /// The place of the n-th call left without a return; the newest replace the oldest.
    fn left(&self, place: u64) -> &OpenCall {
        self.call(SENTINELS + PLACES + place as usize % LEFT)
    }

    /// Clears the node, whose thread has ended, but for the sentinels.
    fn empty(&self) {
        let start = self.address() + PAGE as u64;
        let start = start as *mut core::ffi::c_void;
        // SAFETY: whole pages of this node's mapping, with calls that no thread needs; they read
        // as zero afterwards, as record invariant 2 wants it.
        let emptied = unsafe { madvise(start, GUARD_AT - PAGE, Advice::LinuxDontNeed) };
        let mut last = SENTINELS + PLACES + LEFT;
        if emptied.is_ok() {
            last = PAGE / size_of::<OpenCall>();
        }
        for place in SENTINELS..last {
            self.call(place).slot.store(0, Relaxed);
        }
        self.calls_left.store(0, Relaxed);
    }
}

/// Address of the last place of the node with this first place.
pub(super) fn last_place(first: u64) -> u64 {
    first + ((PLACES - 1) * size_of::<OpenCall>()) as u64
}

/// This thread as in [`Node::owner`].
fn me() -> u64 {
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    u64::from(tid.cast_unsigned()) | u64::from(pid.cast_unsigned()) << 32
}

/// Whether the owner is a thread of this process that has ended. In a forked child, nodes of the
/// parent are copies, and whether a thread uses them is unknown.
///
/// The kernel is asked by the number that the thread itself has: `/proc` may be that of another pid namespace, or not be
/// there. A thread of another process may have the number by now; then the node waits.
fn has_ended(owner: u64) -> bool {
    let tid = rustix::thread::Pid::from_raw(owner as i32);
    let is_gone = |tid| {
        let asked = rustix::thread::sched_getaffinity(Some(tid));
        asked == Err(rustix::io::Errno::SRCH)
    };
    me() >> 32 == owner >> 32 && tid.is_some_and(is_gone)
}

/// Whether the node with this first place holds this address.
pub(super) fn holds(first: u64, address: u64) -> bool {
    let start = first - FRONT as u64;
    (start..start + NODE_BYTES as u64).contains(&address)
}

/// All nodes, the newest first.
fn all() -> impl Iterator<Item = &'static Node> {
    let mut next = NODES.load(Acquire);
    core::iter::from_fn(move || {
        // SAFETY: record invariants 1 and 4.
        let node = unsafe { next.as_ref() }?;
        next = node.next.load(Acquire);
        Some(node)
    })
}

/// A node for this thread, which has none. The caller prepares its profile table.
pub(super) fn take() -> Option<&'static Node> {
    reclaim().or_else(map)
}

/// The node with this first place; 0: the thread has none.
fn at(first: u64) -> Option<&'static Node> {
    let node = first.checked_sub(FRONT as u64)? as *const Node;
    // SAFETY: record invariants 1, 4 and 5.
    unsafe { node.as_ref() }
}

/// The words that hold the profile tables of all nodes.
pub(super) fn tables() -> impl Iterator<Item = &'static AtomicPtr<Table>> {
    all().map(|node| &node.profile)
}

/// The profile table of the node with this first place.
pub(super) fn table_of(first: u64) -> Option<&'static Table> {
    let table = at(first)?.profile.load(Acquire);
    // SAFETY: record invariants 1 and 4.
    unsafe { table.as_ref() }
}

/// A node whose thread has ended, cleared.
fn reclaim() -> Option<&'static Node> {
    let me = me();
    let node = all().take(LOOKS_MAX).find(|node| {
        let owner = node.owner.load(Relaxed);
        // A node with this thread's number belonged to an earlier thread.
        let is_free = owner == me || has_ended(owner);
        is_free
            && node
                .owner
                .compare_exchange(owner, me, Acquire, Relaxed)
                .is_ok()
    })?;
    node.bytes.store(0, Relaxed);
    node.empty();
    Some(node)
}

/// A node in a new mapping, first in the list.
fn map() -> Option<&'static Node> {
    let start = own_memory::map(ptr::null_mut(), NODE_BYTES, MapFlags::empty())?;
    // SAFETY: the new mapping. Failure is accepted: then its first use may take 2 MiB.
    let _ = unsafe { madvise(start, NODE_BYTES, Advice::LinuxNoHugepage) };
    let guard = start.wrapping_byte_add(GUARD_AT);
    // SAFETY: a page of the new mapping. Failure is accepted: then a handler that needs more than
    // the stack overwrites calls.
    let _ = unsafe { mprotect(guard, PAGE, MprotectFlags::empty()) };
    let start: *mut Node = start.cast();
    // SAFETY: record invariants 1 and 2; the mapping is large enough for a node.
    let node = unsafe { &*start };
    node.owner.store(me(), Relaxed);
    for place in 0..SENTINELS {
        node.call(place)
            .slot
            .store(u64::MAX - place as u64, Relaxed);
    }
    let mut head = NODES.load(Acquire);
    loop {
        node.next.store(head, Relaxed);
        match NODES.compare_exchange(head, start, Release, Acquire) {
            Ok(_) => return Some(node),
            Err(now) => head = now,
        }
    }
}

/// Remembers the true return address of a call left without a return, in the node with this first
/// place. The address in its slot may have been copied before, as by a tail call of `swapcontext`.
pub(super) fn remember(first: u64, slot: u64, target: u64) {
    let Some(node) = at(first) else { return };
    let count = node.calls_left.load(Relaxed);
    let place = node.left(count);
    place.target.store(target, Relaxed);
    place.slot.store(slot, Relaxed);
    node.calls_left.store(count + 1, Relaxed);
}

/// Counts a call that called no callback, of the thread whose node has this first place; 0: it has
/// no node.
pub(super) fn count_not_called(first: u64) {
    match at(first) {
        Some(node) => add(&node.not_called, 1),
        None => drop(NOT_CALLED.fetch_add(1, Relaxed)),
    }
}

/// Number of calls that called no callback because one was running on their thread.
pub(crate) fn not_called() -> u64 {
    let of_nodes: u64 = all().map(|node| node.not_called.load(Relaxed)).sum();
    of_nodes + NOT_CALLED.load(Relaxed)
}

/// The true return address of the call with this slot, whichever thread opened it. Needed for a
/// stack that moved to another thread, and for a call wrongly taken for abandoned.
pub(crate) fn find_anywhere(slot: u64, first: u64) -> Option<u64> {
    // A return address is kept before it is replaced. So only a copy of the address that was made
    // elsewhere on the stack needs more, and the search through all open calls is not needed.
    let kept = true_returns::kept(slot).filter(|target| *target != return_address());
    // Those of this thread first, whose node has the first place `first`: an earlier thread may have had the same stack.
    let left = || {
        let owned = at(first).into_iter().chain(all());
        let owned = owned.filter(|node| node.bytes.load(Relaxed) != 0);
        let mut left = owned.flat_map(|node| {
            let count = node.calls_left.load(Relaxed);
            let newest_first = (0..count.min(LEFT as u64)).map(move |n| count - 1 - n);
            newest_first.map(|place| node.left(place))
        });
        let found = left.find(|call| call.slot.load(Relaxed) == slot);
        found.map(|call| call.target.load(Relaxed))
    };
    kept.or_else(left)
}

/// Held by tests that use nodes. A test that failed leaves the others their own result.
#[cfg(test)]
pub(super) fn alone() -> std::sync::MutexGuard<'static, ()> {
    static IN_USE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let held = IN_USE.lock();
    held.unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::super::open_calls::block;
    use super::*;

    /// What a new thread answers, when the kernel lists that thread no more. It is joined a moment
    /// before that.
    fn of_ended_thread<T: Send + 'static>(ask: impl FnOnce() -> T + Send + 'static) -> T {
        let (owner, answer) = std::thread::spawn(|| (me(), ask())).join().unwrap();
        while !has_ended(owner) {
            std::thread::yield_now();
        }
        answer
    }

    /// Whether a node of a thread has an open call with this slot.
    fn is_open(slot: u64) -> bool {
        let mut owned = all().filter(|node| node.bytes.load(Relaxed) != 0);
        owned.any(|node| {
            let mut calls = (SENTINELS..SENTINELS + PLACES).map(|place| node.call(place));
            calls.any(|call| call.slot.load(Relaxed) == slot)
        })
    }

    #[test]
    fn threads_are_told_from_those_that_have_ended() {
        assert!(!has_ended(me()));
        let other = of_ended_thread(me);
        assert!(has_ended(other));
        assert!(!has_ended(other ^ (1 << 40)), "of another process");
    }

    #[test]
    fn a_node_is_taken_over_empty() {
        let _alone = alone();
        let use_one = || {
            let block = block();
            let local = 0_u64;
            let slot = ptr::from_ref(core::hint::black_box(&local)) as u64;
            assert!(block.prepare(slot));
            assert!(block.owns(slot));
            assert_eq!(block.innermost().slot.load(Relaxed), u64::MAX - 1);
            for inner in 0..500 {
                assert!(block.open(slot - inner, 1, 2, 3, block.last_place()));
            }
            assert!(is_open(slot) && is_open(slot - 499));
            (block.first_place(), slot)
        };
        let (first, slot) = of_ended_thread(use_one);
        let again = move || {
            let local = 0_u64;
            assert!(block().prepare(ptr::from_ref(core::hint::black_box(&local)) as u64));
            assert!(!is_open(slot - 499) && !is_open(slot - 7));
            use_one().0
        };
        let second = of_ended_thread(again);
        assert_eq!(first, second, "the ended thread's node");
    }

    #[test]
    fn the_newest_of_the_calls_that_were_left_are_remembered() {
        let _alone = alone();
        let thread = std::thread::spawn(|| {
            let local = 0_u64;
            assert!(block().prepare(ptr::from_ref(core::hint::black_box(&local)) as u64));
            let first = block().first_place();
            (0..2 * LEFT as u64).for_each(|n| remember(first, 5000 + n % 200, n));
            assert_eq!(find_anywhere(5000, first), Some(200));
            assert_eq!(find_anywhere(5199, first), Some(199));
            assert_eq!(find_anywhere(5100, first), None);
        });
        thread.join().unwrap();
    }
}
