//! Triggers as options and as lines of a request: functions that start or stop a tracer, or ask for a
//! snapshot, where they are entered or left.

use ringmark_format::tracer_text::{AnswerLine, RequestLine, Verb};
use ringmark_function_tracer::tracers::Trigger;

use super::one_tracer::OneTracer;
use super::options::PatternSyntax;
use super::tracer_session::TracerSession;
use ringmark_console::{Exit, Failure};

/// What a command ends with that gave a tracer triggers: 4, if one of them is at no function.
///
/// # Errors
/// The process does not answer.
pub(crate) fn exit_of(session: &TracerSession, of: &OneTracer) -> anyhow::Result<Exit> {
    let status = session.ask(Verb::Status, &[])?;
    let tracer = status.tracers().find(|line| of.is(line));
    let name = tracer.map(|line| line.name);
    let is_nowhere =
        |line| matches!(line, AnswerLine::Trigger(t) if t.functions == 0 && Some(t.tracer) == name);
    Ok(match status.lines().any(is_nowhere) {
        true => Exit::NO_TARGET,
        false => Exit::FINE,
    })
}

/// Options that are triggers of a tracer.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Triggers {
    /// Start or stop recording, or ask for a snapshot, where a function is entered or left:
    /// FUNCTION:entry=start, FUNCTION:exit=stop, FUNCTION:entry=snapshot; may be given several times
    #[arg(long = "trigger", value_name = "TRIGGER")]
    pub(crate) triggers: Vec<String>,
}

impl Triggers {
    /// Whether no trigger is given.
    pub(crate) fn is_empty(&self) -> bool {
        self.triggers.is_empty()
    }

    /// Checks the triggers before they are given to a program.
    ///
    /// # Errors
    /// A trigger is wrong: which one, and why.
    pub(crate) fn check(&self, syntax: PatternSyntax) -> Result<(), Failure> {
        for text in &self.triggers {
            if text.contains('\n') {
                return Err(Failure::usage("a trigger cannot hold a line break"));
            }
            let parsed = Trigger::parse(text, syntax.into());
            parsed.map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(())
    }

    /// As lines of a request.
    pub(crate) fn lines(&self, syntax: PatternSyntax) -> Vec<RequestLine<'_>> {
        let syntax = (!self.is_empty()).then(|| syntax.line());
        let triggers = self.triggers.iter().map(|text| RequestLine::Trigger(text));
        syntax.into_iter().chain(triggers).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_as_lines() {
        let triggers = |text: &str| Triggers {
            triggers: vec![text.to_owned()],
        };
        let one = triggers("f*:entry=start");
        assert!(one.check(PatternSyntax::Glob).is_ok() && one.check(PatternSyntax::Regex).is_ok());
        assert_eq!(
            one.lines(PatternSyntax::Regex),
            [
                PatternSyntax::Regex.line(),
                RequestLine::Trigger("f*:entry=start")
            ]
        );
        assert_eq!(Triggers::default().lines(PatternSyntax::Regex), []);
        assert!(triggers("f:entry").check(PatternSyntax::Glob).is_err());
        assert!(
            triggers("f\n:entry=stop")
                .check(PatternSyntax::Glob)
                .is_err()
        );
        assert!(
            triggers("(:entry=stop")
                .check(PatternSyntax::Regex)
                .is_err()
        );
    }
}
