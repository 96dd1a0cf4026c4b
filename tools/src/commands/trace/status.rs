//! `trace status`: the function tracers of a process.

use std::io::Write;

use ringmark_console::json::{Head, JsonOption};
use ringmark_console::units::{count, counted};
use ringmark_console::{Exit, Failure, Sink, Style, Table, json, printable};
use ringmark_format::tracer_text::{AnswerLine, Count, TracerLine, Verb};

use crate::tracing::budget;
use crate::tracing::budget::budgets;
use crate::tracing::one_tracer::OneTracer;
use crate::tracing::requests::Answer;
use crate::tracing::tracer_session::TracerSession;

/// What profilers find while a tracer is on.
const PROFILERS: &str = "profilers outside the process find ringmark_return in the place of the callers of traced \
                         functions, but where exits are sleds; a trace with --args has the callers";

#[derive(Debug, clap::Args)]
pub(super) struct StatusArgs {
    #[command(flatten)]
    of: OneTracer,
    #[command(flatten)]
    json: JsonOption,
}

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

/// Writes one tracer or all as JSON, with their triggers.
pub(super) fn write_json(
    out: &mut Sink,
    answer: &Answer,
    of: &OneTracer,
    head: &Head,
) -> anyhow::Result<()> {
    for tracer in wanted(answer, of) {
        writeln!(out, "{}", json::Line(tracer_json(answer, &tracer, head)))?;
    }
    Ok(())
}

fn tracer_json(answer: &Answer, tracer: &TracerLine<'_>, head: &Head) -> serde_json::Value {
    let triggers = answer.lines().filter_map(|line| match line {
        AnswerLine::Trigger(one) if one.tracer == tracer.name => {
            Some(serde_json::json!({"trigger": one.trigger, "functions": one.functions}))
        }
        _ => None,
    });
    let percent = |ppm: u64| ppm as f64 / 1e4;
    let [inside, caller] = named(answer, tracer.name);
    let given_up = budget::given_up(answer).filter(|one| one.tracer == tracer.name);
    let given_up = given_up
        .map(|one| serde_json::json!({"name": one.function, "cost_percent": percent(one.ppm)}));
    let fields = serde_json::json!({
        "tracer": tracer.name,
        "tracer_kind": tracer.kind,
        "default": tracer.is_default,
        "state": tracer.state,
        "paused": tracer.is_paused,
        "wants_snapshot": tracer.wants_snapshot,
        "functions": tracer.functions,
        "filter": tracer.filter,
        "arguments": tracer.args,
        "results": tracer.result,
        "min_time_ns": tracer.min_ns,
        "max_depth": tracer.max_depth,
        "inside": inside,
        "caller": caller,
        "budget_percent": tracer.budget_ppm.map(percent),
        "cost_percent": tracer.cost_ppm.map(percent),
        "triggers": triggers.collect::<Vec<_>>(),
        "switched_off": given_up.collect::<Vec<_>>(),
    });
    json::object("tracer", head, fields)
}

/// The functions of a tracer whose insides are recorded, and those whose callers are; empty: none in particular.
fn named<'a>(answer: &'a Answer, tracer: &str) -> [&'a str; 2] {
    let mut named = [""; 2];
    for line in answer.lines() {
        match line {
            AnswerLine::Inside(one) if one.tracer == tracer => named[0] = one.patterns,
            AnswerLine::Caller(one) if one.tracer == tracer => named[1] = one.patterns,
            _ => {}
        }
    }
    named
}

/// What a tracer selects of its functions' calls, as the options say it; `None`: it selects all.
fn selected_calls(answer: &Answer, tracer: &TracerLine<'_>) -> Option<String> {
    let [inside, caller] = named(answer, tracer.name);
    let depth = tracer
        .max_depth
        .map(|levels| format!("--max-depth {levels}"));
    let part = |option, patterns: &str| {
        let text = || format!("--{option} {}", printable(patterns));
        (!patterns.is_empty()).then(text)
    };
    let parts = [depth, part("inside", inside), part("caller", caller)];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{}: {}", printable(tracer.name), parts.join(" ")))
}

fn sites_json(answer: &Answer, head: &Head) -> serde_json::Value {
    let number = |wanted| answer.count(wanted);
    let notices = answer.lines().filter_map(|line| match line {
        AnswerLine::Note(text) => Some(text),
        _ => None,
    });
    let fields = serde_json::json!({
        "sites": number(Count::Sites),
        "sites_enabled": number(Count::Open),
        "functions_untraceable": number(Count::Untraceable),
        "sleds": number(Count::Sleds),
        "callbacks_left_out": number(Count::NotCalled),
        "records_ends": shadow_stack(answer).map(|is_on| !is_on),
        "notices": notices.collect::<Vec<_>>(),
    });
    json::object("patch_sites", head, fields)
}

fn wanted<'a>(answer: &'a Answer, of: &OneTracer) -> Vec<TracerLine<'a>> {
    let wanted = |line: &TracerLine<'_>| of.tracer.as_ref().is_none_or(|name| line.name == name);
    answer.tracers().filter(wanted).collect()
}

/// Whether the processor checks return addresses; `None`: the answer does not say.
fn shadow_stack(answer: &Answer) -> Option<bool> {
    answer.lines().find_map(|line| match line {
        AnswerLine::ShadowStack(is_on) => Some(is_on),
        _ => None,
    })
}

impl StatusArgs {
    /// Prints the tracers of a process, their triggers and budgets, and its patch sites.
    ///
    /// # Errors
    /// The process has no tracers, or none of this name.
    pub(super) fn run(self) -> anyhow::Result<Exit> {
        let of = &self.of;
        let session = TracerSession::find(of.pid)?;
        let answer = session.ask(Verb::Status, &[])?;
        if wanted(&answer, of).is_empty() {
            let name = of.tracer.as_ref();
            let text = name.map_or("no tracer available".to_owned(), |name| {
                format!("no tracer {name:?}")
            });
            return Err(Failure::no_target(format!("pid {}: {text}", of.pid)).into());
        }
        let mut out = Sink::direct();
        if self.json.is_on() {
            let head = session.head();
            write_json(&mut out, &answer, of, &head)?;
            writeln!(out, "{}", json::Line(sites_json(&answer, &head)))?;
        } else {
            write_text(&mut out, &answer, of)?;
        }
        out.finish()?;
        if !self.json.is_on() {
            answer.tell_refusals();
        }
        Ok(Exit::FINE)
    }
}

fn write_text(out: &mut Sink, answer: &Answer, of: &OneTracer) -> anyhow::Result<()> {
    let lines = wanted(answer, of);
    let mut table = Table::new(&["TRACER", "KIND", "STATE", ">FUNCTIONS", "FILTER"]);
    lines.iter().for_each(|line| table.row(cells(line)));
    table.write(out, Style::detect())?;
    write_triggers(out, answer, of.tracer.as_deref())?;
    for line in lines.iter().filter_map(|line| selected_calls(answer, line)) {
        writeln!(out, "{line}")?;
    }
    for line in budgets(answer, &lines) {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "{} of {} enabled; {} cannot be traced{}",
        count(answer.count(Count::Open)),
        counted(answer.count(Count::Sites), "patch site"),
        count(answer.count(Count::Untraceable)),
        about_exits(shadow_stack(answer))
    )?;
    let sleds = answer.count(Count::Sleds);
    if sleds > 0 {
        let functions = counted(sleds, "function");
        writeln!(
            out,
            "{functions} with sleds at all exits: return addresses left alone"
        )?;
    }
    if answer.count(Count::Open) > 0 && shadow_stack(answer) == Some(false) {
        writeln!(out, "{PROFILERS}")?;
    }
    let not_called = answer.count(Count::NotCalled);
    if not_called > 0 {
        writeln!(
            out,
            "{} inside a callback called none",
            counted(not_called, "call")
        )?;
    }
    Ok(())
}

/// Text that says whether ends of calls are recorded.
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
