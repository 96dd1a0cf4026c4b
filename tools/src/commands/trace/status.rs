//! `trace status`: the tracers of a process, as it says them.

use std::io::Write;

use super::Of;
use super::budget::budgets;
use crate::output::units::{count, counted};
use crate::output::{Exit, Failure, Sink, Style, Table, printable};
use crate::tracing::target::{Answer, Target};

/// A tracer.
pub(super) struct Line<'a> {
    pub(super) name: &'a str,
    pub(super) is_default: bool,
    kind: &'a str,
    state: &'a str,
    is_paused: bool,
    wants_snapshot: bool,
    functions: &'a str,
    pub(super) budget: Option<&'a str>,
    pub(super) cost: Option<&'a str>,
    pub(super) filter: &'a str,
}

impl<'a> Line<'a> {
    /// `NAME key=value … filter=PATTERNS`.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let (words, filter) = text.split_once(" filter=")?;
        let name = words.split(' ').next()?;
        let value = |key: &str| {
            let mut pairs = words.split(' ').filter_map(|word| word.split_once('='));
            pairs.find(|(k, _)| *k == key).map(|(_, value)| value)
        };
        Some(Self {
            name,
            is_default: value("default")? == "true",
            kind: value("kind")?,
            state: value("state")?,
            is_paused: value("paused").is_some(),
            wants_snapshot: value("snapshot").is_some(),
            functions: value("functions")?,
            budget: value("budget_ppm"),
            cost: value("cost_ppm"),
            filter,
        })
    }

    fn cells(&self) -> Vec<String> {
        let with = |text: &str, more: &[(bool, &str)]| {
            let more = more.iter().filter(|(is_so, _)| *is_so);
            printable(&more.fold(text.to_owned(), |text, (_, word)| text + word))
        };
        vec![
            with(self.name, &[(self.is_default, " (default)")]),
            printable(self.kind),
            with(
                self.state,
                &[
                    (self.is_paused, ", paused"),
                    (self.wants_snapshot, ", wants a snapshot"),
                ],
            ),
            printable(self.functions),
            printable(self.filter),
        ]
    }
}

/// `NAME FUNCTIONS TRIGGER`.
fn trigger(text: &str) -> Option<[&str; 3]> {
    let mut words = text.splitn(3, ' ');
    Some([words.next()?, words.next()?, words.next()?])
}

/// The triggers of one tracer or of all, as a table; none: nothing is written.
pub(super) fn write_triggers(
    out: &mut Sink,
    answer: &Answer,
    tracer: Option<&str>,
) -> anyhow::Result<()> {
    let mut table = Table::new(&["TRACER", ">FUNCTIONS", "TRIGGER"]);
    let triggers = answer.values("trigger").filter_map(trigger);
    let mut is_empty = true;
    for cells in triggers.filter(|cells| tracer.is_none_or(|name| cells[0] == name)) {
        table.row(cells.map(printable).to_vec());
        is_empty = false;
    }
    if !is_empty {
        table.write(out, Style::detect())?;
    }
    Ok(())
}

pub(super) fn status(of: &Of) -> anyhow::Result<Exit> {
    let target = Target::find(of.pid)?;
    let answer = target.ask("status", "")?;
    let lines = answer.values("tracer").filter_map(Line::of);
    let wanted = |line: &Line<'_>| of.tracer.as_ref().is_none_or(|name| line.name == name);
    let lines: Vec<_> = lines.filter(wanted).collect();
    if lines.is_empty() {
        let name = of.tracer.as_ref();
        let text = name.map_or("no tracer available".to_owned(), |name| {
            format!("no tracer {name:?}")
        });
        return Err(Failure::no_target(format!("pid {}: {text}", of.pid)).into());
    }
    let mut table = Table::new(&["TRACER", "KIND", "STATE", ">FUNCTIONS", "FILTER"]);
    lines.iter().for_each(|line| table.row(line.cells()));
    let mut out = Sink::direct();
    table.write(&mut out, Style::detect())?;
    write_triggers(&mut out, &answer, of.tracer.as_deref())?;
    for line in budgets(&answer, &lines) {
        writeln!(out, "{line}")?;
    }
    writeln!(
        out,
        "{} of {} on; {} cannot be traced{}",
        count(answer.number("open")),
        counted(answer.number("sites"), "site"),
        count(answer.number("untraceable")),
        about_exits(answer.values("shadow_stack").next())
    )?;
    let sleds = answer.number("sleds");
    if sleds > 0 {
        let functions = counted(sleds, "function");
        writeln!(
            out,
            "{functions} with sleds at all exits: return addresses left alone"
        )?;
    }
    let not_called = answer.number("not_called");
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

/// What is seen of a call. Older tracers do not say.
fn about_exits(shadow_stack: Option<&str>) -> &'static str {
    match shadow_stack {
        Some("on") => "; entries only: shadow stacks are on (CET), so return addresses stay",
        Some(_) => "; entries and exits",
        None => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_seen_of_a_call() {
        assert!(about_exits(Some("on")).starts_with("; entries only: shadow stacks are on"));
        assert_eq!(about_exits(Some("off")), "; entries and exits");
        assert_eq!(about_exits(None), "");
    }
}
