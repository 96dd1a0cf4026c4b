//! A signal handler at every step of a push and of a pop, and handlers in it: what a reader is
//! shown is what is open, but for the operations under way. Run with `--cfg steps`.
#![cfg(steps)]

use crate::heap;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use heap::{HeapRing, Shape};
use ringmark_format::TypeId;
use ringmark_format::open_span::{FRAMES, Head};
use ringmark_format::session::Mode;
use ringmark_ring::span_stack::FRAME_WORDS;
use ringmark_ring::sync::stepped::set_handler;
use ringmark_ring::{SpanPlace, StackCopy, Writer};

/// What the handlers of a schedule do.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Spans that are open before.
    below: u32,
    /// How the main context ends its two spans: as they nest, or the lower one first.
    is_nested: bool,
    handler: Handler,
    /// Steps at which a handler comes; the second one may lie in the first handler.
    first: u32,
    second: u32,
}

/// What a handler does with its spans.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Handler {
    /// Begins two, and ends them in their order, or the lower one first.
    Nests,
    EndsOutOfOrder,
    /// Begins one that ends later, in the main context.
    LeavesOne,
    /// Ends a span of the context that it interrupted, if one is open there.
    EndsAnothers,
}

const HANDLERS: [Handler; 4] = [
    Handler::Nests,
    Handler::EndsOutOfOrder,
    Handler::LeavesOne,
    Handler::EndsAnothers,
];

thread_local! {
    /// The ring of the schedule before.
    static RING: Cell<Option<HeapRing>> = const { Cell::new(None) };
}

struct Tracer {
    ring: HeapRing,
    plan: Plan,
    next: Cell<u32>,
    step: Cell<u32>,
    looks: Cell<bool>,
    /// Spans that are open, or whose begin or end is under way.
    open: RefCell<Vec<(u32, SpanPlace)>>,
    under_way: RefCell<BTreeSet<u32>>,
    wrong: RefCell<Option<String>>,
}

impl Tracer {
    fn begin(&self) -> u32 {
        let i = self.next.replace(self.next.get() + 1);
        self.under_way.borrow_mut().insert(i);
        let place = push(self.ring.writer, i);
        self.open.borrow_mut().push((i, place));
        self.under_way.borrow_mut().remove(&i);
        i
    }

    fn end(&self, i: u32) {
        let at = self.open.borrow().iter().position(|(open, _)| *open == i);
        let Some(at) = at else { return };
        let (_, place) = self.open.borrow_mut().remove(at);
        self.under_way.borrow_mut().insert(i);
        self.ring.writer.pop_span(place);
        self.under_way.borrow_mut().remove(&i);
    }

    /// What is shown is what is open, but for what is under way.
    fn check(&self) {
        let copy = StackCopy::of(self.ring.stack);
        let under_way = self.under_way.borrow();
        let open = self.open.borrow();
        let mut shown = BTreeSet::new();
        for frame in copy.frames() {
            let i = Head::unpack(frame[0]).map_or(0, |head| head.type_id.0 - 16);
            if frame[1..4] != words(i) || !shown.insert(i) {
                self.found(format!("torn or twice: {frame:x?}"));
            }
            let is_open = open.iter().any(|(open, _)| *open == i);
            if !is_open && !under_way.contains(&i) {
                self.found(format!("{i} is shown, and has ended"));
            }
        }
        let hidden = open.iter().filter(|(i, _)| !shown.contains(i));
        let frame = |place: SpanPlace| place.frame_in(self.ring.stack).unwrap_or(0);
        let hidden: Vec<_> = hidden.map(|(i, place)| (*i, frame(*place))).collect();
        if let Some(missing) = hidden.iter().find(|(_, frame)| *frame <= FRAMES) {
            self.found(format!("{missing:?} is open, and not shown"));
        }
        let over = hidden.len() as u64..=hidden.len() as u64 + under_way.len() as u64;
        if !over.contains(&copy.over) {
            self.found(format!("{} beyond, {hidden:?} are", copy.over));
        }
    }

    fn found(&self, what: String) {
        self.wrong.borrow_mut().get_or_insert(what);
    }

    fn between_steps(&self) {
        // A copy has steps of its own.
        if self.looks.replace(true) {
            return;
        }
        let step = self.step.replace(self.step.get() + 1);
        // Up to there other schedules have looked.
        if step >= self.plan.first {
            self.check();
        }
        self.looks.set(false);
        if step == self.plan.first || step == self.plan.second {
            self.handle();
        }
    }

    fn handle(&self) {
        let interrupted = self.open.borrow().last().map(|(i, _)| *i);
        match self.plan.handler {
            Handler::Nests => {
                let spans = [self.begin(), self.begin()];
                spans.into_iter().rev().for_each(|i| self.end(i));
            }
            Handler::EndsOutOfOrder => {
                let spans = [self.begin(), self.begin()];
                spans.into_iter().for_each(|i| self.end(i));
            }
            Handler::LeavesOne => {
                self.begin();
            }
            Handler::EndsAnothers => interrupted.into_iter().for_each(|i| self.end(i)),
        }
    }
}

/// What the frame of span `i` holds.
fn words(i: u32) -> [u64; 3] {
    let i = u64::from(i);
    [i, i << 32, !i]
}

/// Puts span `i` on the stack.
fn push(writer: &Writer, i: u32) -> SpanPlace {
    writer.push_span(TypeId(16 + i), 2, |to| {
        for (index, word) in words(i).into_iter().enumerate() {
            to.set_word(index, word);
        }
    })
}

const SHAPE: Shape = Shape {
    page_words: 16,
    pages: 2,
};

fn is_long() -> bool {
    std::env::var_os("RINGMARK_LONG").is_some()
}

/// Runs one schedule; returns how many steps there were, or what was wrong.
fn run(plan: Plan) -> Result<u32, String> {
    let ring = RING.take();
    let ring = ring.map_or_else(
        || HeapRing::new(Mode::Overwrite, SHAPE),
        |ring| ring.renewed(Mode::Overwrite),
    );
    let tracer = Rc::new(Tracer {
        ring,
        plan,
        next: Cell::new(1),
        step: Cell::new(0),
        looks: Cell::new(false),
        open: RefCell::default(),
        under_way: RefCell::default(),
        wrong: RefCell::default(),
    });
    for _ in 0..plan.below {
        tracer.begin();
    }
    let handled = tracer.clone();
    set_handler(Some(Rc::new(move || handled.between_steps())));
    let (a, b) = (tracer.begin(), tracer.begin());
    let order = if plan.is_nested { [b, a] } else { [a, b] };
    order.into_iter().for_each(|i| tracer.end(i));
    set_handler(None);
    tracer.check();
    let left: Vec<u32> = tracer.open.borrow().iter().map(|(i, _)| *i).collect();
    left.into_iter().for_each(|i| tracer.end(i));
    tracer.check();
    let (in_use, over) = tracer.ring.frames_in_use();
    if (in_use, over) != (0, 0) {
        tracer.found(format!("left behind: {in_use} frames, {over} beyond"));
    }
    let steps = tracer.step.get();
    match tracer.wrong.take() {
        Some(what) => Err(format!("{plan:?}: {what}")),
        None => {
            RING.set(Rc::into_inner(tracer).map(|tracer| tracer.ring));
            Ok(steps)
        }
    }
}

/// All schedules; the first one that goes wrong is the error.
fn all() -> Result<u64, String> {
    let mut schedules = 0;
    for below in [0, 1, FRAMES - 2, FRAMES - 1, FRAMES, FRAMES + 1] {
        for (handler, is_nested) in HANDLERS.into_iter().flat_map(|h| [(h, true), (h, false)]) {
            let plan = |first, second| Plan {
                below,
                is_nested,
                handler,
                first,
                second,
            };
            let mut first = 0;
            loop {
                let steps = run(plan(first, u32::MAX))?;
                if first >= steps {
                    break;
                }
                // Where no frame is free, most steps are looks for one.
                let every = if is_long() { 1 } else { 1 + steps / 64 };
                for second in (first + 1..first + 24).step_by(every as usize) {
                    run(plan(first, second))?;
                    schedules += 1;
                }
                first += every;
            }
        }
    }
    Ok(schedules)
}

/// What a reader on another processor saw.
#[derive(Debug)]
struct Seen {
    /// Spans that began, those of handlers included.
    pushes: u64,
    copies: u64,
    /// Copies that are of one moment, or show a span that did not change.
    accepted: u64,
    /// Frames that are of no one span.
    torn: u64,
}

/// A handler that begins and ends two spans, after five to ten steps of what it interrupts. Handlers
/// are not interrupted. Counts its spans.
fn handler_of(writer: &'static Writer) -> (Rc<Cell<u64>>, Rc<dyn Fn()>) {
    let spans = Rc::new(Cell::new(0));
    let (counted, left, inside) = (Rc::clone(&spans), Cell::new(1), Cell::new(false));
    let handle = move || {
        if inside.get() || left.replace(left.get() - 1) > 1 {
            return;
        }
        inside.set(true);
        let count = counted.get();
        let one = push(writer, (count % 998) as u32);
        let other = push(writer, (count % 997) as u32);
        writer.pop_span(other);
        writer.pop_span(one);
        counted.set(count + 2);
        left.set(5 + count / 2 % 6);
        inside.set(false);
    };
    (spans, Rc::new(handle))
}

fn beside_a_reader(pushes: u64) -> Seen {
    let ring = HeapRing::new(Mode::Overwrite, SHAPE);
    let (writer, stack, done) = (ring.writer, ring.stack, AtomicBool::new(false));
    let (mut copies, mut accepted, mut torn) = (0, 0, 0);
    let is_torn = |frame: &&[u64; FRAME_WORDS]| {
        let i = Head::unpack(frame[0]).map(|head| head.type_id.0 - 16);
        i.is_none_or(|i| frame[1..4] != words(i))
    };
    let pushes = std::thread::scope(|scope| {
        let _ = scope.spawn(|| {
            while !done.load(Relaxed) {
                let copy = StackCopy::of(stack);
                copies += 1;
                // The outermost frame never changes: it does not count.
                accepted += u64::from(!copy.moving || copy.frames().len() > 1);
                torn += copy.frames().iter().filter(is_torn).count() as u64;
            }
        });
        let outer = push(writer, 999);
        let (spans, handler) = handler_of(writer);
        set_handler(Some(handler));
        let mut number = 0;
        while number + spans.get() < pushes {
            let one = push(writer, (number % 1000) as u32);
            let other = push(writer, (number % 999) as u32);
            writer.pop_span(other);
            writer.pop_span(one);
            number += 2;
        }
        set_handler(None);
        writer.pop_span(outer);
        done.store(true, Relaxed);
        number + spans.get()
    });
    Seen {
        pushes,
        copies,
        accepted,
        torn,
    }
}

#[test]
fn a_reader_beside_a_writer_and_its_handlers_sees_whole_frames() {
    let pushes = if is_long() { 1_000_000_000 } else { 2_000_000 };
    let seen = beside_a_reader(pushes);
    println!("{seen:?}");
    assert!(seen.pushes >= pushes && seen.torn == 0, "{seen:?}");
    assert!(seen.accepted * 10 >= seen.copies, "{seen:?}");
}

#[test]
fn a_handler_at_every_step() {
    println!("{} schedules", all().unwrap());
}
