//! One request that changes a tracer, and the line that says what it did.

use std::io::Write;

use ringmark_format::tracer_text::{RequestLine, Verb};

use crate::output::{Exit, Sink};
use crate::tracing::one_tracer::OneTracer;
use crate::tracing::requests::Answer;
use crate::tracing::tracer_session::TracerSession;

/// Sends a request for one tracer, and prints what it did.
///
/// # Errors
/// The process has no tracers, does not answer, or refuses.
pub(super) fn change(
    of: &OneTracer,
    verb: Verb,
    lines: &[RequestLine<'_>],
) -> anyhow::Result<Exit> {
    let session = TracerSession::find(of.pid)?;
    let answer = session.ask(verb, &of.lines_with(lines))?;
    print(&answer)?;
    Ok(Exit::FINE)
}

/// Prints how many functions an answer says were matched and changed; on standard error, which
/// were refused.
///
/// # Errors
/// Standard output cannot be written.
pub(super) fn print(answer: &Answer) -> anyhow::Result<()> {
    let mut out = Sink::direct();
    writeln!(out, "{}", answer.summary())?;
    out.finish()?;
    answer.tell_refusals();
    Ok(())
}
