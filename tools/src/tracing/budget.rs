//! Budgets of tracers: what they cost, and which functions they switched off.

use ringmark_format::tracer_text::{AnswerLine, GivenUp, TracerLine};

use super::one_tracer::OneTracer;
use super::requests::Answer;
use ringmark_console::{note, printable};

/// Prints which functions a budget switched off, without the first `told`; returns their number.
pub(crate) fn tell_given_up(answer: &Answer, told: usize) -> usize {
    let tell = |one| note(&format!("switched off for its cost: {}", shown(&one)));
    given_up(answer).skip(told).map(tell).count()
}

/// Prints what a tracer with a budget took of the program's CPU time, as it was measured last.
pub(crate) fn tell_cost(status: &Answer, of: &OneTracer) {
    let tracer = status.tracers().find(|tracer| of.is(tracer));
    let figures = tracer.and_then(|tracer| tracer.budget_ppm.zip(tracer.cost_ppm));
    if let Some((budget, cost)) = figures {
        let (budget, cost) = (percent(budget), percent(cost));
        note(&format!(
            "tracing took {cost} of the program's CPU time at the end, the budget is {budget}; --budget off has none"
        ));
    }
}

/// What the budgets did not allow, of all tracers.
pub(crate) fn given_up(answer: &Answer) -> impl Iterator<Item = GivenUp<'_>> {
    answer.lines().filter_map(|line| match line {
        AnswerLine::GivenUp(one) => Some(one),
        _ => None,
    })
}

fn shown(one: &GivenUp<'_>) -> String {
    let (name, share) = (printable(one.function), percent(one.ppm));
    format!("{name}, {share} of the CPU time")
}

/// Millionths as percents.
fn percent(ppm: u64) -> String {
    format!("{:.1} %", ppm as f64 / 1e4)
}

/// Lines for `trace status`: budget and cost of each tracer that has one, and what it switched off.
pub(crate) fn budgets(answer: &Answer, lines: &[TracerLine<'_>]) -> Vec<String> {
    let mut said = Vec::new();
    for line in lines {
        if let Some(budget) = line.budget_ppm {
            let cost = line.cost_ppm;
            let cost = cost.map_or("not known yet".to_owned(), percent);
            let (name, budget) = (printable(line.name), percent(budget));
            said.push(format!("{name}: budget {budget}, cost {cost}"));
        }
        let of_it = given_up(answer).filter(|one| one.tracer == line.name);
        said.extend(of_it.map(|one| format!("  switched off for its cost: {}", shown(&one))));
    }
    said
}
