//! The texts of answers: lines, together no longer than an answer may be.

use std::fmt::{Display, Write};

use ringmark_format::mailbox::TEXT_BYTES_MAX;
use ringmark_format::tracer_text::{
    AnswerLine, Count, Exits, GivenUp, NamedLine, Site, TracerLine, TracerState, TriggerLine,
    Untraceable,
};

use crate::engine::Engine;
use crate::loader_watch::turns;
use crate::record::has_shadow_stack;
use crate::record::nodes::not_called;
use crate::sites::{self, Module, SiteKind};
use crate::tracers::{ChangeOutcome, Selection, Tracer, TracerKind, Tracers, candidate};

/// Bytes kept free for the last line.
const LAST_LINE_BYTES: usize = 64;
/// Given-up functions that an answer names at most.
const GIVEN_UP_MAX: usize = 32;

/// The answer to a change.
pub(super) fn report(outcome: &ChangeOutcome) -> String {
    let mut text = counts(&[
        (Count::Matched, outcome.matched),
        (Count::Patched, outcome.patched),
        (Count::Open, outcome.enabled),
        (Count::Refused, outcome.refused.len()),
    ]);
    if outcome.schema_full {
        let note = "the schema is full: some functions will be shown by number";
        push(&mut text, &AnswerLine::Note(note));
    }
    for one in &outcome.refused {
        let refusal = format!("{}: {}", one.function, one.refusal);
        if !push(&mut text, &AnswerLine::Refusal(&refusal)) {
            break;
        }
    }
    text
}

/// The answer to a change of this tracer.
pub(super) fn changed(outcome: &ChangeOutcome, tracer: &Tracer) -> String {
    let mut text = report(outcome);
    for (n, trigger) in tracer.options().triggers.iter().enumerate() {
        let note = format!("trigger {:?} is at no function", trigger.text());
        if tracer.triggered(n) == 0 && !push(&mut text, &AnswerLine::Note(&note)) {
            break;
        }
    }
    for (patterns, functions) in named_functions(tracer).into_iter().flatten() {
        let note = format!("{patterns:?} is no function here: none of its calls is recorded");
        if functions == 0 && !push(&mut text, &AnswerLine::Note(&note)) {
            break;
        }
    }
    if tracer.options().kind == TracerKind::Callback && !tracer.has_callback() {
        let note = "the program has not said what this tracer calls";
        push(&mut text, &AnswerLine::Note(note));
    }
    text
}

/// The answer with the names of tracers whose triggers wanted a snapshot.
pub(super) fn snapshots(names: &[&str]) -> String {
    let mut text = String::new();
    for name in names {
        push(&mut text, &AnswerLine::Snapshot(name));
    }
    text
}

pub(super) fn counts(counts: &[(Count, usize)]) -> String {
    let lines = counts.iter();
    lines
        .map(|(count, number)| format!("{}\n", AnswerLine::Count(*count, *number as u64)))
        .collect()
}

/// Adds a line; `false`: there is no room for it.
pub(super) fn push(text: &mut String, line: &dyn Display) -> bool {
    let before = text.len();
    // Formatting into a string does not fail.
    let _ = writeln!(text, "{line}");
    let fits = text.len() <= TEXT_BYTES_MAX - LAST_LINE_BYTES;
    if !fits {
        text.truncate(before);
    }
    fits
}

/// The answer with the state of all tracers.
pub(super) fn status(tracers: &Tracers, engine: &Engine) -> String {
    let modules = engine.modules();
    let (sites, refused) = modules.fold((0, 0), |(s, r), module| {
        (s + module.sites.len(), r + module.refused.len())
    });
    let functions = engine.modules().flat_map(|module| &module.functions);
    let mut text = counts(&[
        (Count::Sites, sites),
        (Count::Open, tracers.enabled_sites()),
        (Count::Untraceable, refused),
        (
            Count::Sleds,
            functions.filter(|function| function.has_exits).count(),
        ),
    ]);
    // Where the processor checks return addresses, none is replaced.
    push(&mut text, &AnswerLine::ShadowStack(has_shadow_stack()));
    let not_called = not_called();
    if not_called > 0 {
        push(&mut text, &AnswerLine::Count(Count::NotCalled, not_called));
    }
    for note in about_modules(engine) {
        push(&mut text, &AnswerLine::Note(&note));
    }
    for tracer in tracers.all() {
        let more = |text: &mut String| push_lines(text, &given_up(tracer));
        let is_done = push_tracer(&mut text, tracer)
            && triggers_of(tracer, &mut text)
            && named_by(tracer, &mut text)
            && more(&mut text);
        if !is_done {
            break;
        }
    }
    text
}

/// What keeps the first calls of modules that the program loads out of the trace.
fn about_modules(engine: &Engine) -> impl Iterator<Item = String> {
    let unwatched = engine.unwatched().map(|why| {
        format!("modules that the program loads are found up to 0.1 s after that: {why}")
    });
    let late = turns::late();
    let late = (late > 0).then(|| {
        format!("modules were found late {late} times: first calls of them may be missing")
    });
    let with_moved = engine.modules().filter(|module| !module.moved.is_empty());
    let moved: usize = with_moved.map(|module| module.sites.len()).sum();
    let moved = (moved > 0).then(|| {
        format!(
            "patch sites that take the place of moved instructions: {moved}; modules that the program loads are looked at \
             while a command traces"
        )
    });
    unwatched.into_iter().chain(late).chain(moved)
}

fn named_by(tracer: &Tracer, text: &mut String) -> bool {
    let [inside, callers] = named_functions(tracer);
    let line = |patterns, functions| NamedLine {
        tracer: tracer.name(),
        functions,
        patterns,
    };
    let inside = inside.as_ref().map(|(patterns, n)| line(patterns, *n));
    let callers = callers.as_ref().map(|(patterns, n)| line(patterns, *n));
    let inside = inside.map(AnswerLine::Inside).into_iter();
    let mut lines = inside.chain(callers.map(AnswerLine::Caller));
    lines.all(|line| push(text, &line))
}

/// The functions whose insides, and those whose callers, the selection of a tracer's calls names, and how many they are.
fn named_functions(tracer: &Tracer) -> [Option<(String, u64)>; 2] {
    let calls = &tracer.options().calls;
    let (inside, callers) = tracer.named();
    [(&calls.inside, inside), (&calls.callers, callers)].map(|(named, functions)| {
        let text = || (named.text(), functions as u64);
        (!named.is_empty()).then(text)
    })
}

fn triggers_of(tracer: &Tracer, text: &mut String) -> bool {
    let mut triggers = tracer.options().triggers.iter().enumerate();
    triggers.all(|(n, trigger)| {
        let line = TriggerLine {
            tracer: tracer.name(),
            functions: tracer.triggered(n) as u64,
            trigger: trigger.text(),
        };
        push(text, &AnswerLine::Trigger(line))
    })
}

/// Lines with the functions that a tracer gave up for its budget, and their shares of the CPU time.
pub(super) fn given_up(tracer: &Tracer) -> String {
    let mut text = String::new();
    for one in tracer.given_up().iter().take(GIVEN_UP_MAX) {
        let line = GivenUp {
            tracer: tracer.name(),
            ppm: one.ppm,
            function: &one.function,
        };
        let _ = writeln!(text, "{}", AnswerLine::GivenUp(line));
    }
    text
}

/// Adds lines; `false`: there is no room for all of them.
fn push_lines(text: &mut String, lines: &str) -> bool {
    lines.lines().all(|line| push(text, &line))
}

fn push_tracer(text: &mut String, tracer: &Tracer) -> bool {
    let options = tracer.options();
    let state = match (tracer.is_on(), tracer.is_held()) {
        (false, _) => TracerState::Off,
        (true, true) => TracerState::Leased,
        (true, false) => TracerState::On,
    };
    let line = TracerLine {
        name: tracer.name(),
        number: tracer.number().into(),
        kind: options.kind.name(),
        state: state.name(),
        is_default: tracer.is_default(),
        functions: tracer.matched() as u64,
        args: options.arguments.into(),
        result: options.result,
        min_ns: options.min_ns,
        max_depth: options.calls.max_depth.map(u64::from),
        is_paused: tracer.is_paused(),
        wants_snapshot: tracer.wants_snapshot(),
        budget_ppm: options.budget_ppm,
        cost_ppm: tracer.cost_ppm(),
        filter: &options.selection.text(),
    };
    push(text, &AnswerLine::Tracer(line))
}

/// The answer with the functions from the entry `from` on, as many as fit: those with patch sites that
/// `selection` wants (all if it is empty), then, with `refused`, those that cannot be traced. A
/// line `next=` says where the next answer goes on. Entries are counted over all modules: patch sites,
/// then table entries that are none. So no answer looks at the entries before its own.
pub(super) fn functions(
    engine: &mut Engine,
    selection: &Selection,
    from: usize,
    refused: bool,
) -> String {
    engine.rescan();
    let mut text = String::new();
    let mut first = 0;
    for module in engine.modules() {
        let entries = module.sites.len() + module.refused.len();
        let path = module.path.display().to_string();
        let mut is_named = false;
        for place in from.saturating_sub(first)..entries {
            ringmark::__private::helper::working();
            let line = match module.sites.get(place) {
                Some(site) => wanted_line(engine, module, site, selection),
                None => refused.then(|| refused_line(module, place - module.sites.len())),
            };
            let Some(line) = line.filter(|line| !line.is_empty()) else {
                continue;
            };
            // An entry that is longer than an answer is left out.
            if !push_of(&mut text, &path, &mut is_named, &line) && !text.is_empty() {
                let next = AnswerLine::Count(Count::Next, (first + place) as u64);
                let _ = writeln!(text, "{next}");
                return text;
            }
        }
        first += entries;
    }
    text
}

/// Adds a line, after its module's name before the module's first one. `false`: there is no room for
/// it.
fn push_of(text: &mut String, module: &str, is_named: &mut bool, line: &str) -> bool {
    if std::mem::replace(is_named, true) {
        return push(text, &line);
    }
    let module = AnswerLine::Module(module);
    push(text, &format_args!("{module}\n{line}"))
}

/// The line of a site, if it is at a function's entry and wanted.
fn wanted_line(
    engine: &Engine,
    module: &Module,
    site: &sites::Site,
    selection: &Selection,
) -> Option<String> {
    let is_meant = || selection.is_empty() || selection.wants(&candidate(module, site));
    (site.kind == SiteKind::Entry && is_meant()).then(|| site_line(engine, module, site))
}

/// The line of the table entry with this index among those that are no sites.
fn refused_line(module: &Module, index: usize) -> String {
    module.refused.get(index).map_or_else(String::new, |one| {
        let untraceable = Untraceable {
            address: one.address,
            name: &module.name_of(&one.symbol, one.address),
            reason: &one.reason.to_string(),
        };
        AnswerLine::Untraceable(untraceable).to_string()
    })
}

/// The line of a function that can be traced.
fn site_line(engine: &Engine, module: &Module, site: &sites::Site) -> String {
    let function = module.function(site);
    let symbol = function.map_or(&[][..], |f| &*f.symbol);
    let exits = match function {
        Some(function) if function.has_exits => Exits::Sleds,
        Some(function) if function.has_no_end() => Exits::None,
        _ => Exits::Address,
    };
    let start = function.map_or(site.address, |f| f.address);
    let line = Site {
        is_on: engine.is_enabled(site.id),
        address: site.address,
        bytes: function.map_or(0, |f| f.size.into()),
        exits,
        name: &module.name_of(symbol, start),
    };
    AnswerLine::Site(line).to_string()
}
