//! Requests to the tracers of a process and their answers, as text (SPEC, "Requests to tracers").
//!
//! Both are lines. Every line is a type here, with its writer (`Display`) and its parser. A writer
//! never gives more than one line: what would end it becomes a space. Readers of answers pass over
//! lines and words that they do not know. A request with a line that is not known is refused: done
//! in part, it would be another request.

mod answer;
mod gathered;
mod moved;
mod profile_event;
mod request;
mod sites;
mod tracer;

pub use answer::{AnswerLine, Count, GivenUp, NamedLine, TrampolineRange, TriggerLine, count};
pub use gathered::{Gathered, Histogram};
pub use moved::{MovedJump, MovedSite};
pub use profile_event::ProfileEvent;
pub use request::{Request, RequestLine, Syntax, Verb, WrongLine, starts};
pub use sites::{Exits, Site, Untraceable};
pub use tracer::{LeaseState, TracerLine, TracerState};

use core::fmt;

/// First word of every request to tracers.
pub const TRACE: &str = "trace";
/// How a process without tracers begins its answer to any of these requests.
pub const UNKNOWN_REQUEST: &str = "unknown request";

/// Text without a line's end, and without the other character that its place gives a meaning.
struct Plain<'a>(&'a str, char);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = self.0.split(['\n', '\r', self.1]);
        f.write_str(pieces.next().unwrap_or_default())?;
        pieces.try_for_each(|piece| write!(f, " {piece}"))
    }
}

/// The rest of a line.
fn line(text: &str) -> Plain<'_> {
    Plain(text, '\n')
}

/// A field that a tab ends.
fn field(text: &str) -> Plain<'_> {
    Plain(text, '\t')
}

/// A word: what would end it becomes `_`.
struct Word<'a>(&'a str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pieces = self.0.split([' ', '\n', '\r', '\t']);
        f.write_str(pieces.next().unwrap_or_default())?;
        pieces.try_for_each(|piece| write!(f, "_{piece}"))
    }
}
