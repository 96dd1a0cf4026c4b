//! What tracers with budgets cost, and which functions they gave up.

use super::status::Line;
use crate::output::{note, printable};
use crate::tracing::target::Answer;

/// Says which functions the budget did not allow, but for the first `told`; how many these are.
pub(super) fn tell_given_up(answer: &Answer, told: usize) -> usize {
    let lines = answer.values("given_up").skip(told).filter_map(given_up);
    let tell = |(_, text)| note(&format!("switched off for its cost: {text}"));
    lines.map(tell).count()
}

/// `TRACER PPM NAME` as the tracer, and as text for people.
fn given_up(line: &str) -> Option<(&str, String)> {
    let mut words = line.splitn(3, ' ');
    let (tracer, ppm, name) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
    let text = format!("{}, {} of the CPU time", printable(name), percent(ppm));
    Some((tracer, text))
}

/// Millionths.
fn percent(ppm: u64) -> String {
    format!("{:.1} %", ppm as f64 / 1e4)
}

/// What is to be said of tracers with budgets.
pub(super) fn budgets(answer: &Answer, lines: &[Line<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for line in lines {
        let number = |text: Option<&str>| text.and_then(|text| text.parse().ok());
        if let Some(budget) = number(line.budget) {
            let cost = number(line.cost).map_or("not known yet".to_owned(), percent);
            let (name, budget) = (printable(line.name), percent(budget));
            said.push(format!("{name}: budget {budget}, cost {cost}"));
        }
        let given_up = answer.values("given_up").filter_map(given_up);
        let of_it = given_up.filter(|(tracer, _)| *tracer == line.name);
        said.extend(of_it.map(|(_, text)| format!("  switched off for its cost: {text}")));
    }
    said
}
