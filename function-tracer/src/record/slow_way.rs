//! The slow way of a call, in Rust: a thread's first call, calls that were unwound, a full page,
//! and all that a plan wants beyond entry and exit.
//!
//! Why a stub leaves an entry to [`enter`]:
//!
//! - the thread has no node yet;
//! - the thread has too many open calls, or the processor checks return addresses;
//! - the innermost open call has a slot further in, or at the same address and is no tail call's:
//!   it was abandoned;
//! - the plan wants more than a stub does alone, such as arguments, triggers or a callback.
//!
//! A return goes to [`leave`] where the innermost open call is not the one that returns. Where only
//! the record cannot be written, because the page is full or a handler has interrupted a
//! reservation, the stub calls [`record_only`].

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::function::{CALLER_BITS, LAST_NUMBER, LOOSE_BIT, SLOT_BIT};
use ringmark_format::record::FUNCTION_BIT;

use super::call_plan::{self, CallPlan};
pub(crate) use super::call_records::{ANY_END, PROFILED, SLEDS};
use super::call_records::{Ended, Entered, LEADS, Words, end, record, record_at};
use super::callbacks;
use super::calls_elsewhere;
use super::count_calls;
use super::elsewhere::{self, CallElsewhere};
use super::nodes::find_anywhere;
use super::open_calls::{Block, NewCall, block, put_back};
use super::thread_memory::OpenCall;
use super::trigger_actions;
use super::true_returns;
use super::unwritten;
use super::x86_64::{EntryFrame, ExitFrame, SledFrame, current_cpu, return_address, trap};

/// Entry of a call that a stub left to the slow way.
pub(crate) extern "C" fn enter(frame: &mut EntryFrame) {
    let block = block();
    if block.does_own_work() {
        return;
    }
    let slot = frame.slot_address();
    let has_place = block.prepare(slot) && block.takes(slot);
    let is_elsewhere = !has_place && block.is_elsewhere(slot);
    // Before the triggers of this entry, because the end of a call may have triggers, too.
    if has_place {
        drop_stale(block, slot);
        drop_replaced(block, slot, frame.return_address());
    } else if is_elsewhere {
        calls_elsewhere::drop_left(block, slot, frame.return_address());
    }
    let level = || level(block, slot, is_elsewhere);
    let wanted = wanted_now(frame.type_word()).filter(|(_, plan)| plan.selects(level));
    let Some((type_word, plan)) = wanted else {
        unwritten::add(frame.type_word() & LAST_NUMBER);
        return;
    };
    if plan.is_led_to {
        mark_callers(block, is_elsewhere.then_some(slot));
    }
    let caller = real_caller(block, slot, frame.return_address());
    if plan.callbacks != 0 {
        callbacks::call(block, plan.callbacks, frame.function(), caller);
    }
    let is_timed = plan.exit || plan.profile;
    let tick = if is_timed { ringmark::ticks() } else { 0 };
    let call = Entered {
        type_word,
        plan: &plan,
        caller,
        tick,
    };
    let wants_end = plan.wants_end();
    let hooked = match is_elsewhere {
        true => wants_end && calls_elsewhere::open(block, frame, &call),
        false => wants_end && has_place && open(block, frame, &call),
    };
    if plan.profile && !hooked {
        count_calls::pass(block, type_word & LAST_NUMBER);
    }
    if !plan.writes_entries() {
        unwritten::add(type_word & LAST_NUMBER);
        return; // Such a call has a record at its end, if any.
    }
    let how = match (hooked && plan.exit, is_elsewhere) {
        (false, _) => LOOSE_BIT,
        (true, false) => 0,
        (true, true) => SLOT_BIT,
    };
    let type_word = type_word | how;
    let mut words = Words::of(type_word, slot);
    if plan.with_caller || plan.arguments > 0 {
        words.add(&[caller_word(caller)]);
        words.add(&frame.arguments()[..usize::from(plan.arguments.min(6))]);
    }
    record_at(slot, type_word, words.all(), plan.now(tick));
}

/// The level of a call with this slot; 0 where nothing is known of what is around it.
fn level(block: &Block, slot: u64, is_elsewhere: bool) -> u32 {
    match is_elsewhere {
        true => calls_elsewhere::level(block, slot),
        false if block.takes(slot) => block.level(),
        false => 0,
    }
}

/// Runs the triggers of an entry. Returns the type and the plan of the call for tracers that do not
/// pause afterwards; `None`: no tracer wants the call.
fn wanted_now(type_word: u32) -> Option<(u32, CallPlan)> {
    let number = type_word & LAST_NUMBER;
    let plan = call_plan::of(number);
    plan.on_entry.run();
    if plan.may_pause == 0 {
        return Some((type_word, plan));
    }
    let number = trigger_actions::type_now(number, plan.may_pause)?;
    Some((FUNCTION_BIT | number, call_plan::of(number)))
}

/// Marks the open calls around one whose callers are wanted; on another stack it has this slot.
fn mark_callers(block: &Block, elsewhere: Option<u64>) {
    if let Some(slot) = elsewhere {
        calls_elsewhere::mark_around(block, slot);
    }
    if block.bytes.load(Relaxed) == 0 {
        return;
    }
    for call in block.levels() {
        let type_word = call.type_word.load(Relaxed);
        if type_word & u64::from(LEADS) != 0 {
            return; // so are those around it
        }
        call.type_word.store(type_word | u64::from(LEADS), Relaxed);
    }
}

/// Opens the call, and replaces its return address unless its exits are sites. `false`: too many
/// calls are open.
fn open(block: &Block, frame: &mut EntryFrame, call: &Entered<'_>) -> bool {
    let plan = call.plan;
    let number = call.type_word & LAST_NUMBER;
    let any_end = if plan.has_plain_end() { 0 } else { ANY_END };
    let sleds = if plan.sleds { SLEDS } else { 0 };
    let leads = if plan.is_led_to { LEADS } else { 0 };
    let new = NewCall {
        slot: frame.slot_address(),
        target: call.caller,
        type_word: u64::from(call.type_word | any_end | sleds | leads),
        tick: call.tick,
    };
    let limit = match plan.sleds {
        true => block.last_place(),
        false => block.limit.load(Relaxed),
    };
    let opened = block.open_after(new, limit, |place| {
        if plan.profile {
            count_calls::enter(block, number, place);
        }
    });
    if opened && !plan.sleds {
        true_returns::keep(new.slot, new.target);
        frame.set_return_address(return_address());
    }
    opened
}

/// The true return address of a call whose slot holds `found`. After a tail call the slot holds the
/// address of the return stub.
fn real_caller(block: &Block, slot: u64, found: u64) -> u64 {
    if found != return_address() {
        return elsewhere::of_pad(found).map_or(found, CallElsewhere::target);
    }
    let innermost = (block.bytes.load(Relaxed) != 0).then(|| block.innermost());
    match innermost.filter(|call| call.slot.load(Relaxed) == slot) {
        Some(call) => call.target.load(Relaxed),
        None => find_anywhere(slot, block.first_place()).unwrap_or(found),
    }
}

/// The word with the caller and the CPU in the record of an entry.
const fn caller_word_of(caller: u64, cpu: u64) -> u64 {
    (caller & ((1 << CALLER_BITS) - 1)) | ((cpu + 1) << CALLER_BITS)
}

fn caller_word(caller: u64) -> u64 {
    caller_word_of(caller, current_cpu())
}

/// Ends calls inside the one with this slot, which an exception or a `longjmp` left without a return.
fn drop_stale(block: &Block, slot: u64) {
    loop {
        let call = block.innermost();
        let inner = call.slot.load(Relaxed);
        if !block.is_left(inner, slot) {
            return;
        }
        leave_behind(block, call, inner);
    }
}

/// Ends calls with the same slot that were left without a return: the slot no longer holds the
/// return stub's address, or an exit that is a site would have ended them.
fn drop_replaced(block: &Block, slot: u64, found: u64) {
    loop {
        let call = block.innermost();
        let is_left = found != return_address() || has_sleds(call);
        if call.slot.load(Relaxed) != slot || !is_left {
            return;
        }
        leave_behind(block, call, slot);
    }
}

/// Whether the exits of the call's function are sites.
fn has_sleds(call: &OpenCall) -> bool {
    call.type_word.load(Relaxed) & u64::from(SLEDS) != 0
}

/// Ends a call that will not return. An alternate stack may be gone, and is not touched.
fn leave_behind(block: &Block, call: &OpenCall, slot: u64) {
    if !has_sleds(call) && block.owns(slot) {
        put_back(call, slot);
    }
    finish(block, call, LOOSE_BIT, None);
}

/// Closes a call, counts it and records its end, unless a handler has done so.
fn finish(block: &Block, call: &OpenCall, loose: u32, result: Option<u64>) {
    let slot = call.slot.load(Relaxed);
    let type_word = call.type_word.load(Relaxed) as u32;
    let entered = call.tick.load(Relaxed);
    let number = type_word & LAST_NUMBER;
    let plan = call_plan::of(number);
    let tick = if plan.profile { ringmark::ticks() } else { 0 };
    let is_mine = block.close_after(call, |place| {
        if plan.profile {
            let took = tick.saturating_sub(entered);
            count_calls::leave(block, number, place, took, loose != 0);
        }
    });
    if is_mine {
        let ended = Ended {
            slot,
            type_word: type_word | loose,
            entered,
            now: plan.now(tick),
            result,
        };
        end(&plan, &ended);
    }
}

/// A return that a stub left to the slow way: of a call that is not the innermost, or of several at
/// once.
pub(crate) extern "C" fn leave(frame: &mut ExitFrame) {
    let block = block();
    let slot = frame.slot_address();
    let mut target = None;
    if block.takes(slot) {
        drop_stale(block, slot);
        while block.innermost().slot.load(Relaxed) == slot {
            let call = block.innermost();
            target = Some(call.target.load(Relaxed));
            finish(block, call, 0, Some(frame.result()));
        }
    }
    match target.or_else(|| find_anywhere(slot, block.first_place())) {
        Some(target) => frame.return_address = target,
        None => trap(),
    }
}

/// A return of a call on another stack.
pub(crate) extern "C" fn leave_elsewhere(frame: &mut ExitFrame) {
    let Some(call) = elsewhere::of_pad(frame.return_address) else {
        trap();
    };
    let target = call.target();
    calls_elsewhere::finish(call, 0, Some(frame.result()));
    call.give_back();
    frame.return_address = target;
}

/// An exit in the place of a return that a stub left to the slow way.
pub(crate) extern "C" fn leave_sled(frame: &SledFrame) {
    leave_by_site(frame.slot_address(), Some(frame.result()));
}

/// An exit in front of a return that a stub left to the slow way.
pub(crate) extern "C" fn leave_called(frame: &EntryFrame) {
    leave_by_site(frame.slot_address(), Some(frame.result()));
}

/// An exit in front of a jump that a stub left to the slow way; the return value is unknown.
pub(crate) extern "C" fn leave_tail(frame: &EntryFrame) {
    leave_by_site(frame.slot_address(), None);
}

/// Ends the calls with this slot whose exits are sites. There is none if the function was entered
/// before it was traced, or with too many open calls.
fn leave_by_site(slot: u64, result: Option<u64>) {
    let block = block();
    if block.is_elsewhere(slot) {
        return calls_elsewhere::leave_by_site(slot, result);
    }
    if !block.takes(slot) {
        return;
    }
    drop_stale(block, slot);
    loop {
        let call = block.innermost();
        if call.slot.load(Relaxed) != slot || !has_sleds(call) {
            return;
        }
        finish(block, call, 0, result);
    }
}

/// Writes the record of a call that a stub has opened or closed.
pub(crate) extern "C" fn record_only(type_word: &u64) {
    let frame = core::ptr::from_ref(type_word) as u64;
    record(frame, *type_word as u32, &[]);
}

/// Writes the record of an entry with its caller that a stub could not write. The return is not
/// recorded.
pub(crate) extern "C" fn record_caller(frame: &EntryFrame) {
    let block = block();
    if block.does_own_work() {
        return;
    }
    let caller = real_caller(block, frame.slot_address(), frame.return_address());
    let type_word = frame.type_word() | LOOSE_BIT;
    record(frame.slot_address(), type_word, &[caller_word(caller)]);
}
