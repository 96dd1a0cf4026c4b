//! `trace status`: the function tracers of a process.

use std::io::Write;

use ringmark_format::tracer_text::{AnswerLine, Count, TracerLine, Verb};

use crate::output::units::{count, counted};
use crate::output::{Exit, Failure, Sink, Style, Table, printable};
use crate::tracing::budget::budgets;
use crate::tracing::one_tracer::OneTracer;
use crate::tracing::requests::Answer;
use crate::tracing::tracer_session::TracerSession;

fn cells(tracer: &TracerLine<'_>) -> Vec<String> {
    let with = |text: &str, more: &[(bool, &str)]| {
        let more = more.iter().filter(|(is_so, _)| *is_so);
        printable(&more.fold(text.to_owned(), |text, (_, word)| text + word))
    };
    vec![
        with(tracer.name, &[(tracer.is_default, " (default)")]),
        printable(tracer.kind),
        with(
            tracer.state,
            &[
                (tracer.is_paused, ", paused"),
                (tracer.wants_snapshot, ", wants a snapshot"),
            ],
        ),
        tracer.functions.to_string(),
        printable(tracer.filter),
    ]
}

/// Writes the triggers of one tracer or of all as a table; without any, nothing.
pub(super) fn write_triggers(
    out: &mut Sink,
    answer: &Answer,
    tracer: Option<&str>,
) -> anyhow::Result<()> {
    let mut table = Table::new(&["TRACER", ">FUNCTIONS", "TRIGGER"]);
    let mut is_empty = true;
    for line in answer.lines() {
        let AnswerLine::Trigger(one) = line else {
            continue;
        };
        if tracer.is_none_or(|name| one.tracer == name) {
            let functions = one.functions.to_string();
            table.row(vec![
                printable(one.tracer),
                functions,
                printable(one.trigger),
            ]);
            is_empty = false;
        }
    }
    if !is_empty {
        table.write(out, Style::detect())?;
    }
    Ok(())
}

/// Prints the tracers of a process, their triggers and budgets, and its patch sites.
///
/// # Errors
/// The process has no tracers, or none of this name.
pub(super) fn status(of: &OneTracer) -> anyhow::Result<Exit> {
    let session = TracerSession::find(of.pid)?;
    let answer = session.ask(Verb::Status, &[])?;
    let wanted = |line: &TracerLine<'_>| of.tracer.as_ref().is_none_or(|name| line.name == name);
    let lines: Vec<_> = answer.tracers().filter(wanted).collect();
    if lines.is_empty() {
        let name = of.tracer.as_ref();
        let text = name.map_or("no tracer available".to_owned(), |name| {
            format!("no tracer {name:?}")
        });
        return Err(Failure::no_target(format!("pid {}: {text}", of.pid)).into());
    }
    let mut table = Table::new(&["TRACER", "KIND", "STATE", ">FUNCTIONS", "FILTER"]);
    lines.iter().for_each(|line| table.row(cells(line)));
    let mut out = Sink::direct();
    table.write(&mut out, Style::detect())?;
    write_triggers(&mut out, &answer, of.tracer.as_deref())?;
    for line in budgets(&answer, &lines) {
        writeln!(out, "{line}")?;
    }
    let shadow_stack = answer.lines().find_map(|line| match line {
        AnswerLine::ShadowStack(is_on) => Some(is_on),
        _ => None,
    });
    writeln!(
        out,
        "{} of {} enabled; {} cannot be traced{}",
        count(answer.count(Count::Open)),
        counted(answer.count(Count::Sites), "patch site"),
        count(answer.count(Count::Untraceable)),
        about_exits(shadow_stack)
    )?;
    let sleds = answer.count(Count::Sleds);
    if sleds > 0 {
        let functions = counted(sleds, "function");
        writeln!(
            out,
            "{functions} with sleds at all exits: return addresses left alone"
        )?;
    }
    let not_called = answer.count(Count::NotCalled);
    if not_called > 0 {
        writeln!(
            out,
            "{} inside a callback called none",
            counted(not_called, "call")
        )?;
    }
    out.finish()?;
    Ok(Exit::FINE)
}

/// Text that says whether ends of calls are recorded. Older tracers do not say.
fn about_exits(shadow_stack: Option<bool>) -> &'static str {
    match shadow_stack {
        Some(true) => "; entries only: shadow stacks are on (CET), so return addresses stay",
        Some(false) => "; entries and exits",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_a_call() {
        assert!(about_exits(Some(true)).starts_with("; entries only: shadow stacks are on"));
        assert_eq!(about_exits(Some(false)), "; entries and exits");
        assert_eq!(about_exits(None), "");
    }
}
