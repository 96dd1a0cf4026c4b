//! Event types of a running process that a policy has off.

use std::sync::atomic::Ordering::Relaxed;

use ringmark_decoder::{Dump, EventType};
use ringmark_format::glob;
use ringmark_format::policy::{Policy, ServicePolicy};
use ringmark_format::schema::Shape;
use ringmark_format::session_text::{SessionRequest, Switch, TypePattern};
use ringmark_reader::Session;

/// Whether a type is on in a running process; unknown of types beyond the bitmap, which have no bit.
pub(crate) fn is_on(session: &Session, ty: &EventType) -> Option<bool> {
    let words = session.ring().enabled_words();
    let word = words.get(ty.id.0 as usize / 64)?;
    Some(word.load(Relaxed) >> (ty.id.0 % 64) & 1 == 1)
}

/// Whether a request with this pattern is for the type, as the process itself decides.
pub(crate) fn matches(pattern: &TypePattern<'_>, ty: &EventType) -> bool {
    let is_level = |most| ty.level.is_some_and(|level| level <= most);
    let is_category = |wanted: &str| ty.origin.category == wanted.as_bytes();
    let has_switch = !ty.shape.is_some_and(Shape::has_no_switch);
    has_switch
        && glob::matches(pattern.name.as_bytes(), &ty.name)
        && pattern.level.is_none_or(is_level)
        && pattern.category.is_none_or(is_category)
}

/// Whether the rules of a section have the type off: the last one that matches decides.
fn is_taken_away(section: &ServicePolicy, ty: &EventType) -> bool {
    let switch = |rule: &String| match SessionRequest::parse(rule) {
        Ok(Some(SessionRequest::Switch(switch, pattern))) => {
            matches(&pattern, ty).then_some(switch)
        }
        _ => None,
    };
    section.rules.iter().rev().find_map(switch) == Some(Switch::Disable)
}

/// Types of a session, of those that are `wanted`, that the policy wants off; and how many of them are off. `dump` has
/// the session's schema.
pub(crate) fn of_session(
    policy: &Policy,
    session: &Session,
    dump: &Dump,
    wanted: impl Fn(&EventType) -> bool,
) -> (usize, usize) {
    let read = dump.sessions.iter().find(|of| of.uuid == session.uuid());
    let (Some(section), Some(read)) = (policy.of(&session.name()), read) else {
        return (0, 0);
    };
    let is_its = |ty: &&EventType| ty.known && wanted(ty) && is_taken_away(section, ty);
    let its: Vec<_> = read.schema.types().iter().filter(is_its).collect();
    let off = its
        .iter()
        .filter(|ty| is_on(session, ty) == Some(false))
        .count();
    (its.len(), off)
}
