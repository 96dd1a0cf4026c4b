//! The open calls of each thread: which return addresses were replaced, and by what they count.
//!
//! Only the thread itself and signal handlers on it touch its block and its places. To open a call
//! is to take the place first (move `top`), then to fill it, `slot` last; to close one is to clear
//! `slot`, then to give the place back by storing `top` as it was. So a handler may come between
//! any two instructions: it finds places that are taken and not filled (slot 0), passes over them,
//! and leaves `top` as it found it, or lower where calls below were left without a return. A jump
//! out of a handler may leave such places; they go with the call around them.

use core::mem::offset_of;
use core::sync::atomic::Ordering::{Relaxed, Release};
use core::sync::atomic::{AtomicU64, compiler_fence};

use super::nodes::{self, Node};
use super::own_stack;
use super::profile_tables::Table;
use super::x86_64::{has_shadow_stack, return_address};

/// A call whose return address was replaced.
#[repr(C)]
pub(crate) struct OpenCall {
    /// Address of the word that holds the return address; 0: a free place.
    pub(crate) slot: AtomicU64,
    /// Where the call really returns to.
    pub(crate) target: AtomicU64,
    /// Type of its entry record.
    pub(crate) type_word: AtomicU64,
    /// Tick of its entry, where a tracer wants durations.
    pub(crate) tick: AtomicU64,
}

/// What a place is filled with when a call is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewCall {
    pub(super) slot: u64,
    pub(super) target: u64,
    pub(super) type_word: u64,
    pub(super) tick: u64,
}

/// What each thread has, all zero at first: then no stack is its own, and everything goes the slow
/// way. Lies where the stubs find it.
#[repr(C)]
pub(crate) struct Block {
    /// Address of the next free place.
    pub(crate) top: AtomicU64,
    /// End address of the last place.
    pub(crate) limit: AtomicU64,
    /// Lowest address of the thread's own stack.
    pub(crate) low: AtomicU64,
    /// Its size; 0: not known.
    pub(crate) bytes: AtomicU64,
    /// Top of the stack for the slow way; 0: in use, or not there.
    pub(crate) stack: AtomicU64,
    /// Not 0 while the thread prepares its node, or runs a callback.
    pub(crate) busy: AtomicU64,
    /// Address of the first place.
    first: AtomicU64,
}

/// This thread's block.
pub(crate) fn block() -> &'static Block {
    let block: *const Block;
    // SAFETY: reads the thread pointer and the symbol's offset from it (initial-exec model).
    unsafe {
        core::arch::asm!(
            "mov {block}, qword ptr [rip + ringmark_open_calls@gottpoff]",
            "add {block}, qword ptr fs:[0]",
            block = out(reg) block,
            options(pure, readonly, nostack),
        );
    }
    // SAFETY: the thread's own memory, zero or written through atomics, there while it runs.
    unsafe { &*block }
}

impl Block {
    /// Whether `address` lies on the thread's own stack, as far as that is known.
    pub(crate) fn owns(&self, address: u64) -> bool {
        address.wrapping_sub(self.low.load(Relaxed)) < self.bytes.load(Relaxed)
    }

    /// Address of the first place of its node, which it must have.
    pub(super) fn first_place(&self) -> u64 {
        self.first.load(Relaxed)
    }

    /// The innermost open call, or a sentinel: places that are taken and not filled are passed
    /// over. The thread must have its node.
    pub(crate) fn innermost(&self) -> &'static OpenCall {
        let mut place = self.top.load(Relaxed) as *const OpenCall;
        loop {
            place = place.wrapping_sub(1);
            // SAFETY: `top` lies after the sentinels of the thread's node, whose slots are not 0.
            let call: &'static OpenCall = unsafe { &*place };
            if call.slot.load(Relaxed) != 0 {
                return call;
            }
        }
    }

    /// Where places end, for calls whose return address stays.
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

    /// Opens a call in a place before `limit`, which must be one of this thread's. `false`: there
    /// are too many. `before` is called with the number of its place, before the call is there.
    pub(super) fn open_after(&self, new: NewCall, limit: u64, before: impl FnOnce(usize)) -> bool {
        let top = self.top.load(Relaxed);
        if top >= limit {
            return false;
        }
        self.top.store(top + size_of::<OpenCall>() as u64, Relaxed);
        compiler_fence(Release); // The place is taken before it is filled.
        let place = top as *const OpenCall;
        // SAFETY: `top` was below the thread's limit, so it is a place of the thread's node.
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

    /// Closes a call, the innermost one that is filled. `false`: a handler did. Else `before` is
    /// called with the number of its place, which is given back after that.
    pub(super) fn close_after(&self, call: &OpenCall, before: impl FnOnce(usize)) -> bool {
        // One instruction: a handler that finds the same call abandoned must not end it, too.
        let is_mine = call.slot.swap(0, Relaxed) != 0;
        let address = core::ptr::from_ref(call) as u64;
        if is_mine {
            before(self.place(address));
        }
        compiler_fence(Release); // The place is empty before it is given back.
        self.top.store(address, Relaxed);
        is_mine
    }

    /// Number of the place at this address.
    fn place(&self, address: u64) -> usize {
        (address - self.first.load(Relaxed)) as usize / size_of::<OpenCall>()
    }

    /// What this thread counts in, if it has it.
    pub(super) fn table(&self) -> Option<&'static Table> {
        nodes::table_of(self.first.load(Relaxed))
    }

    /// Gives this thread a node. `false`: it has none, and goes on without.
    pub(crate) fn prepare(&self) -> bool {
        if self.bytes.load(Relaxed) != 0 {
            return true;
        }
        if self.busy.swap(1, Relaxed) != 0 {
            return false;
        }
        let ready = own_stack::find().is_some_and(|stack| self.take_node(stack.low, stack.bytes));
        self.busy.store(0, Relaxed);
        ready
    }

    fn take_node(&self, low: u64, bytes: u64) -> bool {
        let Some(node) = nodes::take() else {
            return false;
        };
        nodes::forget_stack(low, bytes);
        node.low.store(low, Relaxed);
        node.bytes.store(bytes, Relaxed);
        self.first.store(node.first(), Relaxed);
        self.top.store(node.first(), Relaxed);
        // Where the processor checks return addresses none is replaced: no place, no return.
        let limit = if has_shadow_stack() { 0 } else { node.limit() };
        self.limit.store(limit, Relaxed);
        self.stack.store(node.stack(), Relaxed);
        self.low.store(low, Relaxed);
        compiler_fence(Release); // The size says that the rest is there.
        self.bytes.store(bytes, Relaxed);
        true
    }
}

/// Restores the return address of an abandoned call, if its slot still holds ours. Then even a
/// return from it goes right (a coroutine on a piece of this stack).
pub(crate) fn put_back(call: &OpenCall, slot: u64) {
    let word = slot as *mut u64;
    // SAFETY: a word of the thread's own stack, which stays mapped while the thread runs.
    let found = unsafe { word.read_volatile() };
    if found == return_address() {
        let target = call.target.load(Relaxed);
        nodes::remember(slot, target);
        // SAFETY: as above; the word holds our address, and gets the one that was there before.
        unsafe { word.write_volatile(target) };
    }
}

/// Where the stubs find things, in bytes.
pub(crate) mod offsets {
    use super::{Block, Node, OpenCall, offset_of};

    pub(crate) const TOP: usize = offset_of!(Block, top);
    pub(crate) const LIMIT: usize = offset_of!(Block, limit);
    pub(crate) const LOW: usize = offset_of!(Block, low);
    pub(crate) const BYTES: usize = offset_of!(Block, bytes);
    pub(crate) const STACK: usize = offset_of!(Block, stack);
    pub(crate) const FIRST: usize = offset_of!(Block, first);
    pub(crate) const BLOCK: usize = size_of::<Block>();
    pub(crate) const SLOT: usize = offset_of!(OpenCall, slot);
    pub(crate) const TARGET: usize = offset_of!(OpenCall, target);
    pub(crate) const TYPE_WORD: usize = offset_of!(OpenCall, type_word);
    pub(crate) const TICK: usize = offset_of!(OpenCall, tick);
    pub(crate) const OPEN_CALL: usize = size_of::<OpenCall>();
    pub(crate) const NODE: usize = size_of::<Node>();
    pub(crate) const NODE_NEXT: usize = offset_of!(Node, next);
    pub(crate) const NODE_LOW: usize = offset_of!(Node, low);
    pub(crate) const NODE_BYTES: usize = offset_of!(Node, bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outermost() -> u64 {
        u64::MAX - 1
    }

    /// On a thread of its own.
    fn with_node(test: impl FnOnce(&'static Block) + Send) {
        let _alone = nodes::IN_USE.lock().unwrap();
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                assert!(block().prepare());
                test(block());
            });
            thread.join().unwrap();
        });
    }

    #[test]
    fn there_is_an_end_of_places() {
        with_node(|block| {
            let opened = (0..)
                .take_while(|n| block.open(100_000 - n, 1, 2, 3, block.last_place()))
                .count();
            assert_eq!(opened, nodes::PLACES - 1);
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
