//! Triggers: what happens to a function tracer where functions are entered or left.

use super::selection::{PatternError, Selection, Syntax};

/// Tracers with triggers that start or stop them, at most. The calls of a function have one type
/// for each set of tracers that pause.
pub(super) const PAUSING_MAX: usize = 4;

/// When a trigger acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Before the function's first instruction.
    Entry,
    /// When the function was left by a return, or in another way, which may be noticed later.
    Exit,
}

/// What a trigger does to its tracer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Calls that begin from now on are recorded.
    Start,
    /// Calls that begin from now on are not recorded.
    Stop,
    /// A snapshot is requested, see `trace snapshot`.
    Snapshot,
}

/// A trigger: an action at one moment of the calls of some functions.
#[derive(Debug, Clone)]
pub struct Trigger {
    pub(super) functions: Selection,
    pub(super) moment: Moment,
    pub(super) action: Action,
    text: String,
}

/// A trigger whose text cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("trigger {found:?}: {reason}")]
pub struct TriggerError {
    /// The trigger's text.
    pub found: String,
    /// What is wrong with it.
    pub reason: TriggerFault,
}

/// What is wrong with a trigger.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TriggerFault {
    /// It is not made of a function, a moment and an action.
    #[error("expected FUNCTION:entry=ACTION or FUNCTION:exit=ACTION")]
    Shape,
    /// No action has this name.
    #[error("expected start, stop or snapshot after '='")]
    Action,
    /// The pattern of its function is wrong.
    #[error(transparent)]
    Function(PatternError),
}

impl Trigger {
    /// Parses `FUNCTION:MOMENT=ACTION`. The function is a pattern, the moment `entry` or `exit`,
    /// the action `start`, `stop` or `snapshot`.
    ///
    /// # Errors
    /// The text is not in that form.
    pub fn parse(text: &str, syntax: Syntax) -> Result<Self, TriggerError> {
        let wrong = |reason| TriggerError {
            found: text.to_owned(),
            reason,
        };
        let shape = || wrong(TriggerFault::Shape);
        let (front, action) = text.rsplit_once('=').ok_or_else(shape)?;
        let (function, moment) = front.rsplit_once(':').ok_or_else(shape)?;
        let moment = match moment {
            "entry" => Moment::Entry,
            "exit" => Moment::Exit,
            _ => return Err(shape()),
        };
        let action = match action {
            "start" => Action::Start,
            "stop" => Action::Stop,
            "snapshot" => Action::Snapshot,
            _ => return Err(wrong(TriggerFault::Action)),
        };
        let mut functions = Selection::default();
        let wanted = functions.want(function, syntax);
        wanted.map_err(|error| wrong(TriggerFault::Function(error)))?;
        Ok(Self {
            functions,
            moment,
            action,
            text: text.to_owned(),
        })
    }

    /// The trigger as written by the user.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Whether a trigger starts or stops its tracer.
pub(super) fn may_pause(triggers: &[Trigger]) -> bool {
    triggers.iter().any(|t| t.action != Action::Snapshot)
}

/// Whether a trigger requests snapshots.
pub(super) fn may_request(triggers: &[Trigger]) -> bool {
    triggers.iter().any(|t| t.action == Action::Snapshot)
}

/// Whether a trigger acts at the end of calls.
pub(super) fn acts_at_exit(triggers: &[Trigger]) -> bool {
    triggers.iter().any(|t| t.moment == Moment::Exit)
}

/// Whether a tracer with these triggers waits to be started by one of them.
pub(super) fn waits(triggers: &[Trigger]) -> bool {
    triggers.iter().any(|t| t.action == Action::Start)
}

/// Whether both are the same triggers, by their texts.
pub(super) fn are_same(these: &[Trigger], those: &[Trigger]) -> bool {
    let texts = |triggers: &[Trigger]| triggers.iter().map(|t| t.text.clone()).collect::<Vec<_>>();
    texts(these) == texts(those)
}

#[cfg(test)]
mod tests {
    use super::super::selection::PatternFault;
    use super::*;

    #[test]
    fn words_of_triggers() {
        let parse = |text| Trigger::parse(text, Syntax::Glob);
        let trigger = parse("ns::f(a = b)@lib*:exit=snapshot").unwrap();
        assert_eq!(trigger.moment, Moment::Exit);
        assert_eq!(trigger.action, Action::Snapshot);
        assert_eq!(trigger.functions.text(), "ns::f(a = b)@lib*");
        let no_name = TriggerFault::Function(PatternError {
            found: String::new(),
            reason: PatternFault::NoName,
        });
        for (wrong, reason) in [
            ("f", TriggerFault::Shape),
            ("f:entry", TriggerFault::Shape),
            ("f=start", TriggerFault::Shape),
            ("f:return=start", TriggerFault::Shape),
            ("f:entry=go", TriggerFault::Action),
            (":entry=start", no_name),
        ] {
            let error = parse(wrong).unwrap_err();
            assert!(error.to_string().contains("expected"), "{error}");
            let found = wrong.to_owned();
            assert_eq!(error, TriggerError { found, reason });
        }
        let nested = "trigger \":entry=start\": pattern \"\": expected a name, '*' is any text";
        assert_eq!(parse(":entry=start").unwrap_err().to_string(), nested);
        assert!(Trigger::parse("(:entry=start", Syntax::Regex).is_err());
    }

    #[test]
    fn what_makes_a_tracer_pause() {
        let of = |text| vec![Trigger::parse(text, Syntax::Glob).unwrap()];
        assert!(may_pause(&of("f:entry=start")) && waits(&of("f:entry=start")));
        assert!(may_pause(&of("f:entry=stop")) && !waits(&of("f:entry=stop")));
        assert!(!may_pause(&of("f:entry=snapshot")) && !may_pause(&[]));
        assert!(acts_at_exit(&of("f:exit=stop")) && !acts_at_exit(&of("f:entry=stop")));
        assert!(are_same(&of("f:entry=stop"), &of("f:entry=stop")));
        assert!(!are_same(&of("f:entry=stop"), &[]));
    }
}
