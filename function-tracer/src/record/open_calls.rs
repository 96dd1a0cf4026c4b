//! The open calls of a thread, with their true return addresses.
//!
//! Only the thread itself and signal handlers on it change its block and its places.
//!
//! - To open a call, the place is taken (`top` moves), then filled, `slot` last.
//! - To close a call, `slot` is cleared, then the place is given back (`top` as it was).
//!
//! So a handler may come between any two instructions. It finds places that are taken and not
//! filled (slot 0) and passes over them. It leaves `top` as it found it, or lower where calls below
//! were left without a return. A jump out of a handler may leave places that are taken and not
//! filled; they are given back with the call around them.
//!
//! | state of a place | `slot` | below `top` | what a search does |
//! | --- | --- | --- | --- |
//! | free | 0 | no | ends before it |
//! | taken, not filled | 0 | yes | passes over it |
//! | open | the address of the return address | yes | finds it |
//! | closed, not given back | 0 | yes | passes over it |
//!
//! A call is *abandoned* when its function was left without a return, by an exception, a `longjmp`
//! or a coroutine that was dropped. No code of this library runs at that moment. Its place stays
//! open until a later call of the thread has a slot at the same address or further out. Then the
//! slow way ends it, and its record says that it did not return. The open calls of a thread that
//! has ended are cleared when another thread takes the node over.

use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU64, compiler_fence};

use ringmark::__private::foreign::Stack;

use super::alternate_stack::AlternateStack;
use super::thread_memory::{OUTERMOST, OpenCall, Table};
use super::x86_64::{has_shadow_stack, return_address};
use super::{levels, nodes, own_stack, profile_tables, true_returns};

/// The fields of [`OpenCall`] for a call to open.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewCall {
    pub(super) slot: u64,
    pub(super) target: u64,
    pub(super) type_word: u64,
    pub(super) tick: u64,
}

/// The words of each thread that its stubs read, in thread-local memory. All are 0 at first: then
/// no stack is the thread's own, and all its calls take the slow way.
#[repr(C)]
pub(crate) struct Block {
    /// Address of the next free place.
    pub(crate) top: AtomicU64,
    /// Address up to which the stubs open calls; 0: they open none.
    pub(crate) limit: AtomicU64,
    /// Lowest address of the thread's own stack.
    pub(crate) low: AtomicU64,
    /// Bytes of that stack; 0: unknown, and the thread has no node.
    pub(crate) bytes: AtomicU64,
    /// Top of the second stack; 0: there is none.
    pub(crate) stack: AtomicU64,
    /// 1 while the thread prepares its node or runs a callback, else 0.
    pub(crate) busy: AtomicU64,
    /// Address of the first place; 0: the thread has no node.
    first: AtomicU64,
    /// The thread's alternate signal stack.
    alternate: AlternateStack,
    /// Number of the call on another stack that this thread entered last and that has not ended.
    pub(super) elsewhere: AtomicU64,
    /// Depth of work that is this library's own, which the thread does now: its calls are not traced.
    own_work: AtomicU64,
    /// What `limit` is without it. While it lasts that is 0, so that the stubs leave all calls to the slow way.
    limit_else: AtomicU64,
    /// Calls that go without a node before it is tried again to prepare one, and how many that were last time.
    untried: AtomicU64,
    pause: AtomicU64,
    /// Address of the first place whose call is a level: those before it were open when the selection of `generation`
    /// came into force.
    no_levels: AtomicU64,
    /// As in [`super::levels`].
    generation: AtomicU64,
}

/// Most calls before it is tried again: a try takes some 25 us where it fails.
const PAUSE_MAX: u64 = 1 << 10;

/// Work of this library's own on this thread, until this is dropped.
#[derive(Debug)]
pub(crate) struct OwnWork(());

impl OwnWork {
    /// Begins it. What the thread calls from now on is not traced, so that the tracer does not show up in what it
    /// traces, and does not wait for itself.
    pub(crate) fn begin() -> Self {
        let block = block();
        if !block.does_own_work() {
            block.limit_else.store(block.limit.load(Relaxed), Relaxed);
            block.limit.store(0, Relaxed);
        }
        block
            .own_work
            .store(block.own_work.load(Relaxed) + 1, Relaxed);
        Self(())
    }

    /// Makes all that this thread ever does the library's own.
    pub(crate) fn for_ever(self) {
        core::mem::forget(self);
    }

    /// Runs `work` as if it was the program's.
    pub(crate) fn suspended<R>(work: impl FnOnce() -> R) -> R {
        let block = block();
        let depth = block.own_work.swap(0, Relaxed);
        if depth == 0 {
            return work();
        }
        block.limit.store(block.limit_else.load(Relaxed), Relaxed);
        let result = work();
        block.limit_else.store(block.limit.load(Relaxed), Relaxed);
        block.limit.store(0, Relaxed);
        block.own_work.store(depth, Relaxed);
        result
    }
}

impl Drop for OwnWork {
    fn drop(&mut self) {
        let block = block();
        let depth = block.own_work.load(Relaxed).saturating_sub(1);
        block.own_work.store(depth, Relaxed);
        if depth == 0 {
            block.limit.store(block.limit_else.load(Relaxed), Relaxed);
        }
    }
}

/// This thread's block.
pub(crate) fn block() -> &'static Block {
    let block: *const Block;
    // SAFETY: record invariant 10.
    unsafe {
        core::arch::asm!(
            "mov {block}, qword ptr [rip + ringmark_open_calls@gottpoff]",
            "add {block}, qword ptr fs:[0]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: record invariants 2 and 4; thread-local memory stays while its thread runs.
    unsafe { &*block }
}

impl Block {
    /// Whether the thread does work that is this library's own.
    pub(super) fn does_own_work(&self) -> bool {
        self.own_work.load(Relaxed) != 0
    }

    /// Whether `address` lies on the thread's own stack; `false` where that is unknown.
    pub(crate) fn owns(&self, address: u64) -> bool {
        address.wrapping_sub(self.low.load(Relaxed)) < self.bytes.load(Relaxed)
    }

    /// Whether calls with this slot are opened: it is on the thread's own stack, or on its alternate
    /// signal stack. A handler there ends before the thread goes on, so its calls are inside those
    /// that it interrupted.
    pub(crate) fn takes(&self, slot: u64) -> bool {
        self.owns(slot) || self.bytes.load(Relaxed) != 0 && self.alternate.holds(slot)
    }

    /// Whether calls with this slot are opened by [`super::elsewhere`]: it is on no stack that the
    /// thread knows as its own.
    pub(super) fn is_elsewhere(&self, slot: u64) -> bool {
        let first = self.first.load(Relaxed);
        first != 0 && !self.takes(slot) && !nodes::holds(first, slot)
    }

    /// The innermost open call, unless it is a sentinel; `None`: no call is open.
    pub(super) fn innermost_open(&self) -> Option<&'static OpenCall> {
        let call = (self.bytes.load(Relaxed) != 0).then(|| self.innermost())?;
        (call.slot.load(Relaxed) < OUTERMOST).then_some(call)
    }

    /// Whether a call with the slot `inner` was left without a return when the thread has one with
    /// `slot`: it is further in, or of a handler on the other stack that was left.
    pub(crate) fn is_left(&self, inner: u64, slot: u64) -> bool {
        if inner >= OUTERMOST {
            return false;
        }
        match (self.owns(inner), self.owns(slot)) {
            (true, false) => false,
            (false, true) => true,
            _ => inner < slot,
        }
    }

    /// Address of the first place of the thread's node; 0: it has no node.
    pub(super) fn first_place(&self) -> u64 {
        self.first.load(Relaxed)
    }

    /// The program's stack around a frame at `address`, for a caller on the second stack. Unknown
    /// where the frame itself is on a second stack: a handler has interrupted the slow way there.
    pub(crate) fn stack_around(&self, address: u64) -> Stack {
        let first = self.first.load(Relaxed);
        match first != 0 && nodes::holds(first, address) {
            true => Stack::Unknown,
            false => Stack::Around(address as usize),
        }
    }

    /// The innermost open call, or a sentinel. Places that are taken and not filled are passed
    /// over. The thread must have a node.
    pub(crate) fn innermost(&self) -> &'static OpenCall {
        let mut place = self.top.load(Relaxed) as *const OpenCall;
        loop {
            place = place.wrapping_sub(1);
            // SAFETY: record invariants 1, 4 and 6: the walk ends at a sentinel, whose slot is not
            // 0.
            let call: &'static OpenCall = unsafe { &*place };
            if call.slot.load(Relaxed) != 0 {
                return call;
            }
        }
    }

    /// The level of a call that the thread makes now: the open calls around it that began since the present selection
    /// came into force. The thread must have a node, and calls that were left must be closed.
    pub(super) fn level(&self) -> u32 {
        let top = self.top.load(Relaxed);
        let is_new = self.generation.load(Relaxed) != levels::generation();
        if is_new || top < self.no_levels.load(Relaxed) {
            self.no_levels.store(top, Relaxed);
            self.generation.store(levels::generation(), Relaxed);
        }
        let open = top - self.no_levels.load(Relaxed);
        (open / size_of::<OpenCall>() as u64) as u32
    }

    /// The open calls that are levels, the innermost first.
    pub(super) fn levels(&self) -> impl Iterator<Item = &'static OpenCall> {
        let count = self.level();
        let top = self.top.load(Relaxed) as *const OpenCall;
        let places = (1..=count as usize).map(move |n| top.wrapping_sub(n));
        // SAFETY: record invariants 1, 4 and 6: places of this thread's node, below `top`.
        let calls = places.map(|place| unsafe { &*place });
        calls.filter(|call| call.slot.load(Relaxed) != 0)
    }

    /// Limit for calls whose return address stays.
    pub(crate) fn last_place(&self) -> u64 {
        nodes::last_place(self.first.load(Relaxed))
    }

    #[cfg(test)]
    pub(super) fn open(
        &self,
        slot: u64,
        target: u64,
        type_word: u64,
        tick: u64,
        limit: u64,
    ) -> bool {
        let call = NewCall {
            slot,
            target,
            type_word,
            tick,
        };
        self.open_after(call, limit, |_| ())
    }

    /// Opens a call in a place before `limit`, which must be a place of this thread. `false`: too
    /// many calls are open. `before` gets the number of the place before the call can be found.
    pub(super) fn open_after(&self, new: NewCall, limit: u64, before: impl FnOnce(usize)) -> bool {
        let top = self.top.load(Relaxed);
        if top >= limit {
            return false;
        }
        self.top.store(top + size_of::<OpenCall>() as u64, Relaxed);
        compiler_fence(Release); // The place is taken before it is filled.
        let place = top as *const OpenCall;
        // SAFETY: record invariants 1, 4 and 6; `top` was below the limit.
        let call = unsafe { &*place };
        call.target.store(new.target, Relaxed);
        call.type_word.store(new.type_word, Relaxed);
        call.tick.store(new.tick, Relaxed);
        before(self.place(top));
        compiler_fence(Release); // A handler that finds the slot finds the rest.
        call.slot.store(new.slot, Relaxed);
        true
    }

    #[cfg(test)]
    fn close(&self, call: &OpenCall) -> bool {
        self.close_after(call, |_| ())
    }

    /// Closes the innermost call. `false`: a handler has closed it. Else `before` gets the number
    /// of its place before the place is given back.
    pub(super) fn close_after(&self, call: &OpenCall, before: impl FnOnce(usize)) -> bool {
        // One instruction: a handler that takes the same call for abandoned must not end it, too.
        let is_mine = call.slot.swap(0, Relaxed) != 0;
        let address = core::ptr::from_ref(call) as u64;
        if is_mine {
            before(self.place(address));
        }
        compiler_fence(Release); // The place is empty before it is given back.
        self.top.store(address, Relaxed);
        is_mine
    }

    /// Number of the place of this open call.
    pub(super) fn place_of(&self, call: &OpenCall) -> usize {
        self.place(core::ptr::from_ref(call) as u64)
    }

    /// Number of the place at this address.
    fn place(&self, address: u64) -> usize {
        (address - self.first.load(Relaxed)) as usize / size_of::<OpenCall>()
    }

    /// The profile table of this thread, if it has one.
    pub(super) fn table(&self) -> Option<&'static Table> {
        nodes::table_of(self.first.load(Relaxed))
    }

    /// Gives this thread a node unless it has one; `here` is an address on the stack that it runs on.
    /// `false`: it goes on without.
    pub(crate) fn prepare(&self, here: u64) -> bool {
        if self.bytes.load(Relaxed) != 0 {
            return true;
        }
        let untried = self.untried.load(Relaxed);
        if untried > 0 {
            self.untried.store(untried - 1, Relaxed);
            return false;
        }
        if self.busy.swap(1, Relaxed) != 0 {
            return false;
        }
        let ready =
            own_stack::find(here).is_some_and(|stack| self.take_node(stack.low, stack.bytes));
        if !ready {
            let pause = (2 * self.pause.load(Relaxed)).clamp(1, PAUSE_MAX);
            self.pause.store(pause, Relaxed);
            self.untried.store(pause, Relaxed);
        }
        self.busy.store(0, Relaxed);
        ready
    }

    fn take_node(&self, low: u64, bytes: u64) -> bool {
        let Some(node) = nodes::take() else {
            return false;
        };
        profile_tables::prepare(&node.profile);
        node.bytes.store(bytes, Relaxed);
        self.first.store(node.first(), Relaxed);
        self.top.store(node.first(), Relaxed);
        // Where the processor checks return addresses, none is replaced: the stubs open no call.
        let can_replace = !has_shadow_stack() && true_returns::prepare(low, bytes);
        let limit = if can_replace { node.limit() } else { 0 };
        self.limit.store(limit, Relaxed);
        self.stack.store(node.stack(), Relaxed);
        self.low.store(low, Relaxed);
        compiler_fence(Release); // A handler that finds the size finds the rest.
        self.bytes.store(bytes, Relaxed);
        true
    }
}

/// Restores the return address of an abandoned call, if its slot still holds this library's. Then
/// even a return from that call is correct, as from a coroutine on a piece of this stack.
pub(crate) fn put_back(call: &OpenCall, slot: u64) {
    let word = slot as *mut u64;
    // SAFETY: record invariant 7.
    let found = unsafe { word.read_volatile() };
    if found == return_address() {
        let target = call.target.load(Relaxed);
        nodes::remember(block().first_place(), slot, target);
        // SAFETY: record invariant 7.
        unsafe { word.write_volatile(target) };
    }
}

/// Distances at which the stubs find the words of a block, in bytes.
pub(crate) mod offsets {
    use core::mem::offset_of;

    use super::{AlternateStack, Block};

    pub(crate) const TOP: usize = offset_of!(Block, top);
    pub(crate) const LIMIT: usize = offset_of!(Block, limit);
    pub(crate) const LOW: usize = offset_of!(Block, low);
    pub(crate) const BYTES: usize = offset_of!(Block, bytes);
    pub(crate) const STACK: usize = offset_of!(Block, stack);
    pub(crate) const ALTERNATE_LOW: usize =
        offset_of!(Block, alternate) + offset_of!(AlternateStack, low);
    pub(crate) const ALTERNATE_BYTES: usize =
        offset_of!(Block, alternate) + offset_of!(AlternateStack, bytes);
    pub(crate) const FIRST: usize = offset_of!(Block, first);
    pub(crate) const NO_LEVELS: usize = offset_of!(Block, no_levels);
    pub(crate) const GENERATION: usize = offset_of!(Block, generation);
    pub(crate) const BLOCK: usize = size_of::<Block>();
}

#[cfg(test)]
mod tests {
    use super::super::thread_memory::PLACES;
    use super::*;

    fn here() -> u64 {
        let local = 0_u8;
        core::ptr::from_ref(core::hint::black_box(&local)) as u64
    }

    fn outermost() -> u64 {
        u64::MAX - 1
    }

    /// On a thread of its own.
    fn with_node(test: impl FnOnce(&'static Block) + Send) {
        let _alone = nodes::alone();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert!(block().prepare(here()));
                test(block());
            });
            thread.join().unwrap();
        });
    }

    #[test]
    fn there_is_an_end_of_places() {
        with_node(|block| {
            let opened = (0..)
                .take_while(|n| block.open(1_000_000 - n, 1, 2, 3, block.last_place()))
                .count();
            assert_eq!(opened, PLACES - 1);
            (0..opened).for_each(|_| assert!(block.close(block.innermost())));
            assert_eq!(block.innermost().slot.load(Relaxed), outermost());
        });
    }

    #[test]
    fn a_place_that_is_not_filled_is_passed_over_and_goes_with_the_call_around_it() {
        with_node(|block| {
            let first = block.top.load(Relaxed);
            assert!(block.open(1000, 1, 2, 3, block.last_place()));
            // A handler comes after a place was taken, opens a call of its own and jumps away.
            let taken = block.top.load(Relaxed) + size_of::<OpenCall>() as u64;
            block.top.store(taken, Relaxed);
            assert_eq!(block.innermost().slot.load(Relaxed), 1000);
            assert!(block.open(500, 1, 2, 3, block.last_place()));
            assert_eq!(block.innermost().slot.load(Relaxed), 500);
            assert!(block.close(block.innermost()));
            assert_eq!(block.top.load(Relaxed), taken);
            let outer = block.innermost();
            assert!(block.close(outer));
            assert_eq!(block.top.load(Relaxed), first);
            assert!(!block.close(outer), "it is closed once");
        });
    }
}
