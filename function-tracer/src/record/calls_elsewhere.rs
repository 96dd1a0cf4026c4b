//! The slow way of calls on other stacks: opens them, and ends them at their return, when they are
//! found to be left, or at an exit that is a site.

use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::function::{LAST_NUMBER, LOOSE_BIT, SLOT_BIT};

use super::call_plan;
use super::call_records::{ANY_END, Ended, Entered, LEADS, SLEDS, end};
use super::count_calls::{self, EndedElsewhere};
use super::elsewhere::{self, CallElsewhere, Taken, with_level};
use super::levels;
use super::open_calls::{Block, block};

use super::x86_64::{EntryFrame, has_shadow_stack};

/// Ends the calls that had this slot, before another one begins there. `found`: what the slot holds.
/// Where it leads to the pad of one, that one has ended with a tail call; others were left without a
/// return.
pub(super) fn drop_left(block: &Block, slot: u64, found: u64) {
    for call in elsewhere::with_slot(slot) {
        let loose = if call.pad() == found { 0 } else { LOOSE_BIT };
        finish_in(block, call, loose, None);
    }
}

/// The level of a call that begins with this slot. The outermost one of its stack is inside those of the thread's own
/// that it began in.
pub(super) fn level(block: &Block, slot: u64) -> u32 {
    let around = elsewhere::all_around(slot, block.elsewhere.load(Relaxed)).next();
    let around = around.and_then(CallElsewhere::level);
    around.map_or_else(|| block.level(), |level| level.saturating_add(1))
}

/// Marks the calls around one that begins with this slot as [`LEADS`] says.
pub(super) fn mark_around(block: &Block, slot: u64) {
    let known = block.elsewhere.load(Relaxed);
    elsewhere::all_around(slot, known).for_each(|call| call.add_to_type(LEADS));
}

/// Opens the call, and replaces its return address unless its exits are sites. `false`: there is no
/// entry for it.
pub(super) fn open(block: &Block, frame: &mut EntryFrame, call: &Entered<'_>) -> bool {
    let plan = call.plan;
    if !plan.sleds && has_shadow_stack() {
        return false;
    }
    let slot = frame.slot_address();
    // After a tail call the slot still leads to a pad, which returns once for both.
    let tail = elsewhere::of_pad(frame.return_address()).filter(|call| call.is_at(slot));
    let Some(entry) = tail.or_else(|| elsewhere::open(slot, call.caller)) else {
        return false;
    };
    let any_end = if plan.has_plain_end() { 0 } else { ANY_END };
    let sleds = if plan.sleds { SLEDS } else { 0 };
    let leads = if plan.is_led_to { LEADS } else { 0 };
    let known = block.elsewhere.load(Relaxed);
    let (mut around, mut level) = (known, 0);
    if plan.profile || plan.levels.is_some() {
        around = elsewhere::around(slot, known);
        level = levels::packed(self::level(block, slot));
    }
    let type_word = call.type_word | any_end | sleds | leads;
    entry.begin(with_level(type_word, level), call.tick, around);
    block.elsewhere.store(entry.number(), Relaxed);
    if plan.profile {
        count_calls::enter_elsewhere(block, call.type_word & LAST_NUMBER);
    }
    if !plan.sleds && tail.is_none() {
        frame.set_return_address(entry.pad());
    }
    true
}

/// Ends a call, unless it has ended: counts it and records its end.
pub(super) fn finish(call: &CallElsewhere, loose: u32, result: Option<u64>) {
    let block = block();
    block.prepare(call.slot());
    finish_in(block, call, loose, result);
}

fn finish_in(block: &Block, call: &CallElsewhere, loose: u32, result: Option<u64>) {
    let Some(taken) = call.take() else { return };
    let around = call.around().next();
    block
        .elsewhere
        .store(around.map_or(0, CallElsewhere::number), Relaxed);
    let plan = call_plan::of(taken.type_word & LAST_NUMBER);
    let tick = if plan.profile { ringmark::ticks() } else { 0 };
    if plan.profile {
        count(block, call, &taken, tick, loose != 0);
    }
    let ended = Ended {
        slot: taken.slot,
        type_word: taken.type_word | loose | SLOT_BIT,
        entered: taken.entered,
        now: plan.now(tick),
        result,
    };
    end(&plan, &ended);
}

fn count(block: &Block, call: &CallElsewhere, taken: &Taken, tick: u64, unwound: bool) {
    let number = taken.type_word & LAST_NUMBER;
    let took = tick.saturating_sub(taken.entered);
    let is_same = |outer: &CallElsewhere| outer.type_word() & LAST_NUMBER == number;
    let around = call.around().next();
    if let Some(around) = around {
        around.add_inside(took);
    }
    // The thread's own call, if it has lasted as long.
    let own = block
        .innermost_open()
        .filter(|own| around.is_none() && own.tick.load(Relaxed) <= taken.entered);
    let ended = EndedElsewhere {
        number,
        took,
        inside: taken.inside,
        is_recursive: call.around().any(is_same),
        unwound,
        around: own.map(|own| block.place_of(own)),
    };
    count_calls::leave_elsewhere(block, &ended);
}

/// Ends the call with this slot whose exits are sites.
pub(super) fn leave_by_site(slot: u64, result: Option<u64>) {
    for call in elsewhere::with_slot(slot) {
        if call.type_word() & SLEDS != 0 {
            finish(call, 0, result);
            call.give_back();
        }
    }
}
