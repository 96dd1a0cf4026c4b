//! The event types of this process: ids, schema entries, on and off.

use core::mem::offset_of;
use core::sync::atomic::Ordering::Relaxed;

use ringmark_format::record::{FIRST_TYPE, LAST_TYPE};
use ringmark_format::session::SessionState;
use ringmark_format::span_condition::SpanCondition;
use ringmark_ring::control_lock::ControlLock;
use ringmark_ring::published_static::Published;

use super::core::Core;
use super::known;
#[cfg(feature = "tracing")]
use super::process;
use super::process::ForkLock;
use super::schema::{publish, push_entry};
use super::span_gate::{self, EVERYWHERE};
#[cfg(feature = "tracing")]
use crate::description::Level;
use crate::description::{Description, EventType, Field, Shape};
use crate::setup::filter::{Directives, Pattern};

/// Answers requests: gets the whole text, returns the answer for the peer, or what was wrong. Runs
/// on the session's helper thread; there is none with control off.
pub(super) type Answer = fn(&str) -> Result<String, String>;

/// What is known of the types, under one lock; the event path never comes here.
struct Registry {
    events: Vec<EventType>,
    /// Types that came at run time, for a forked child's new schema.
    dynamic: Vec<(EventType, Vec<Field>, u32)>,
    /// Entries that libraries wrote themselves, for a forked child's new schema, too.
    written: Vec<u8>,
    /// See [`is_first`].
    seen: Vec<usize>,
    /// The answers to requests of libraries, by their first word.
    answers: Vec<(&'static str, Answer)>,
    /// What the helper thread calls between requests.
    idle: Option<fn()>,
    directives: Option<Directives>,
    patterns: Vec<Pattern>,
}

static REGISTRY: ControlLock<Registry> = ControlLock::new(Registry {
    events: Vec::new(),
    dynamic: Vec::new(),
    written: Vec::new(),
    seen: Vec::new(),
    answers: Vec::new(),
    idle: None,
    directives: None,
    patterns: Vec::new(),
});

/// The registry's lock, for the hooks of a fork.
pub(super) const FORK_LOCK: ForkLock = ForkLock {
    take: || REGISTRY.before_fork(),
    give_back: || REGISTRY.after_fork(),
};

/// Registers every event type of the program in a new session, and makes it the session of this
/// process: after the types are described, before they are switched on.
pub(super) fn register_all(core: &'static Core, directives: Directives) {
    let mut registry = REGISTRY.lock();
    // In a forked child: the parent's. They stay enabled, so that no event is missed until then.
    for event in registry.events.drain(..) {
        event.state.set_id(0);
    }
    registry.directives = Some(directives);
    let mut schema = Vec::new();
    for known in known::types() {
        registry.add(&known.description(), &mut schema);
    }
    for (event, fields, fixed_bytes) in std::mem::take(&mut registry.dynamic) {
        registry.add(
            &Description {
                event,
                fields: &fields,
                fixed_bytes,
            },
            &mut schema,
        );
        registry.dynamic.push((event, fields, fixed_bytes));
    }
    schema.extend_from_slice(&registry.written);
    publish(core, &schema);
    core.publish();
    registry.apply(core);
}

/// Switches all types off and takes their ids back: no session will come.
pub(super) fn unregister_all() {
    let mut registry = REGISTRY.lock();
    for event in registry.events.drain(..) {
        event.state.enable(false);
        event.state.set_id(0);
    }
}

/// Registers an event type that was found at run time; see [`super::registration`].
pub(super) fn register(description: &Description<'_>) {
    REGISTRY.lock().register(description);
}

/// Whether this is the first call with this number.
pub(super) fn is_first(number: usize) -> bool {
    let mut registry = REGISTRY.lock();
    let is_new = !registry.seen.contains(&number);
    if is_new {
        registry.seen.push(number);
    }
    is_new
}

/// Registers a type unless `place` is filled, and fills it.
#[cfg(feature = "tracing")]
pub(super) fn register_once<T: Sync>(
    description: &Description<'_>,
    place: &Published<T>,
    done: impl FnOnce() -> Box<T>,
) -> &'static T {
    let mut registry = REGISTRY.lock();
    if place.current().is_none() {
        registry.register(description);
    }
    place.get_or_publish(done)
}

/// The bits of the spans inside which a type like this is on, or would be if it were registered; 0: nowhere, as
/// without a session.
#[cfg(feature = "tracing")]
pub(crate) fn bits_wanted(event: &EventType) -> u32 {
    if session_is_open() {
        REGISTRY.lock().bits(event)
    } else {
        0
    }
}

/// The least important level that an enabled type may have; `None`: no type is enabled.
#[cfg(feature = "tracing")]
pub(crate) fn level_max() -> Option<Level> {
    if !session_is_open() {
        return None;
    }
    let registry = REGISTRY.lock();
    match &registry.directives {
        Some(directives) if !registry.patterns.iter().any(|pattern| pattern.on) => {
            directives.level_max()
        }
        _ => Some(Level::Trace),
    }
}

#[cfg(feature = "tracing")]
fn session_is_open() -> bool {
    match Core::current() {
        Some(core) => core.wiped.is_ours() && !core.file.closed(),
        // What is on decides whether a child that was just forked will have one.
        None => process::awaits_session(),
    }
}

/// The listener that hears when types were switched on or off; set once, never called under a lock.
static LISTENER: Published<fn()> = Published::new();

/// Sets the one listener; a second one is not taken.
#[cfg(feature = "tracing")]
pub(crate) fn listen(listener: fn()) {
    LISTENER.get_or_publish(|| Box::new(listener));
}

/// Notifies the listener that types may have been enabled or disabled.
pub(super) fn tell() {
    if let Some(listener) = LISTENER.current() {
        listener();
    }
}

/// Adds a pattern and returns how many types match it.
pub(super) fn apply_pattern(core: &Core, pattern: Pattern) -> usize {
    let mut registry = REGISTRY.lock();
    let switched = registry.events.iter();
    let matched = switched
        .filter(|event| !event.shape.has_no_switch() && pattern.matches(event))
        .count();
    // What a later pattern says of the same types is all that counts.
    registry
        .patterns
        .retain(|before| !before.is_within(&pattern));
    registry.patterns.push(pattern);
    registry.apply(core);
    matched
}

/// Replaces the directives, and forgets the patterns.
pub(super) fn apply_directives(core: &Core, directives: Directives) -> usize {
    let mut registry = REGISTRY.lock();
    registry.directives = Some(directives);
    registry.patterns.clear();
    registry.apply(core)
}

/// How many conditions on spans the filter has, with this one.
pub(super) fn conditions_with(condition: &SpanCondition) -> usize {
    let registry = REGISTRY.lock();
    let mut all = registry.conditions();
    all.push(condition);
    let is_first = |at: &usize| !all[..*at].contains(&all[*at]);
    (0..all.len()).filter(is_first).count()
}

/// Names that `events` would show, for a pattern that matched nothing.
pub(super) fn names() -> Vec<&'static str> {
    let registry = REGISTRY.lock();
    let switched = registry.events.iter();
    switched
        .filter(|event| !event.shape.has_no_switch())
        .map(|event| event.name)
        .collect()
}

impl Registry {
    /// Registers a type that was found at run time.
    fn register(&mut self, description: &Description<'_>) {
        let Description {
            event,
            fields,
            fixed_bytes,
        } = *description;
        self.dynamic.push((event, fields.to_vec(), fixed_bytes));
        let Some(core) = Core::current().filter(|core| !core.file.closed()) else {
            return;
        };
        let mut schema = Vec::new();
        self.add(description, &mut schema);
        publish(core, &schema);
        self.switch(core, &event);
    }

    /// Gives a type its id and describes it, once.
    fn add(&mut self, description: &Description<'_>, schema: &mut Vec<u8>) {
        let event = description.event;
        if event.state.id() != 0 {
            return;
        }
        let id = FIRST_TYPE + self.events.len() as u32;
        if id > LAST_TYPE {
            return;
        }
        event.state.set_id(id);
        self.events.push(event);
        push_entry(schema, id, description);
    }

    /// Enables or disables every type, updates the bitmap, returns how many are enabled. What waits for spans does so
    /// before its types are enabled.
    fn apply(&self, core: &Core) -> usize {
        span_gate::put_in_force(&self.conditions(), || {
            let writers = (0..core.file.slots_used()).filter_map(|slot| core.wiped.writer(slot));
            writers.for_each(|writer| writer.set_clock(0));
        });
        let mut on = 0;
        for event in &self.events {
            on += usize::from(self.switch(core, event));
        }
        core.state_word(offset_of!(SessionState, enabled_generation))
            .fetch_add(1, Relaxed);
        on
    }

    /// Enables or disables one type, updates the bitmap, returns which.
    fn switch(&self, core: &Core, event: &EventType) -> bool {
        let bits = self.bits(event);
        let enabled = span_gate::set_bits(event.state.id(), bits) && bits != 0;
        event.state.enable(enabled);
        show(core, event.state.id(), enabled);
        enabled
    }

    /// The conditions on spans of the filter.
    fn conditions(&self) -> Vec<&SpanCondition> {
        let of_patterns = self.patterns.iter().filter_map(|one| one.inside.as_ref());
        let of_directives = self.directives.iter().flat_map(Directives::conditions);
        of_patterns.chain(of_directives).collect()
    }

    /// The bits of the spans inside which a type is on; 0: nowhere.
    fn bits(&self, event: &EventType) -> u32 {
        if event.shape.has_no_switch() {
            return EVERYWHERE;
        }
        let is_span = matches!(event.shape, Shape::Span | Shape::SpanNew);
        let mut bits = if is_span {
            span_gate::bits_of_span(event.name)
        } else {
            0
        };
        for pattern in self.patterns.iter().rev().filter(|one| one.matches(event)) {
            match (&pattern.inside, pattern.on) {
                (Some(condition), _) => bits |= span_gate::bit_of(condition),
                (None, true) => return EVERYWHERE,
                (None, false) => return bits,
            }
        }
        let Some(directives) = &self.directives else {
            return EVERYWHERE;
        };
        if directives.enables(event.target, event.level) {
            return EVERYWHERE;
        }
        let inside = directives.enables_inside(event.target, event.level);
        inside.fold(bits, |bits, condition| bits | span_gate::bit_of(condition))
    }
}

fn show(core: &Core, id: u32, enabled: bool) {
    if let Some(word) = core.file.enabled_words().get(id as usize / 64) {
        let bit = 1_u64 << (id % 64);
        let old = word.load(Relaxed);
        word.store(if enabled { old | bit } else { old & !bit }, Relaxed);
    }
}

/// Registers the answer to requests with this first word, and what the helper thread calls between
/// requests.
pub(crate) fn answer_requests(word: &'static str, answer: Answer, idle: fn()) {
    let mut registry = REGISTRY.lock();
    registry.answers.push((word, answer));
    registry.idle = Some(idle);
}

/// Does what a library has to do between requests.
pub(super) fn idle() {
    let idle = REGISTRY.lock().idle;
    if let Some(idle) = idle {
        idle();
    }
}

/// The answer to requests with this first word.
pub(super) fn who_answers(word: &str) -> Option<Answer> {
    let registry = REGISTRY.lock();
    let mut answers = registry.answers.iter();
    answers
        .find(|(known, _)| *known == word)
        .map(|found| found.1)
}

/// Appends entries that a library wrote itself. `false`: the session's schema has no room for
/// them. Without a session they wait for one.
pub(crate) fn append_written(entries: &[u8]) -> bool {
    let mut registry = REGISTRY.lock();
    registry.written.extend_from_slice(entries);
    let core = Core::current().filter(|core| !core.file.closed());
    core.is_none_or(|core| publish(core, entries))
}
