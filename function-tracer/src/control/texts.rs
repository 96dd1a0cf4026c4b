//! What is answered: lines of `key=value`, no longer than an answer may be.

use std::fmt::{Display, Write};

use ringmark_format::mailbox::TEXT_BYTES_MAX;

use crate::engine::Engine;
use crate::record::has_shadow_stack;
use crate::record::nodes::not_called;
use crate::sites::{Kind, Module};
use crate::tracers::{Outcome, Selection, Tracer, TracerKind, Tracers, candidate};

/// Kept free for the last line.
const LAST_LINE_BYTES: usize = 64;
/// Functions that are named, of those that were given up.
const GIVEN_UP_MAX: usize = 32;

/// What a change did.
pub(super) fn report(outcome: &Outcome) -> String {
    let mut text = format!(
        "matched={}\npatched={}\nopen={}\nrefused={}\n",
        outcome.matched,
        outcome.patched,
        outcome.open,
        outcome.refused.len()
    );
    if outcome.schema_full {
        text.push_str("note=the schema is full: some functions will be shown by number\n");
    }
    for (name, why) in &outcome.refused {
        if !push(&mut text, &format_args!("refusal={name}: {why}")) {
            break;
        }
    }
    text
}

/// What a change of this tracer did.
pub(super) fn changed(outcome: &Outcome, tracer: &Tracer) -> String {
    let mut text = report(outcome);
    for (n, trigger) in tracer.options().triggers.iter().enumerate() {
        let line = format_args!("note=trigger {:?} is at no function", trigger.text());
        if tracer.triggered(n) == 0 && !push(&mut text, &line) {
            break;
        }
    }
    if tracer.options().kind == TracerKind::Callback && !tracer.has_callback() {
        push(
            &mut text,
            &"note=the program has not said what this tracer calls",
        );
    }
    text
}

/// Tracers whose triggers wanted a snapshot.
pub(super) fn snapshots(names: &[&str]) -> String {
    let mut text = String::new();
    for name in names {
        push(&mut text, &format_args!("snapshot={name}"));
    }
    text
}

/// Adds a line; `false`: there is no room for it.
fn push(text: &mut String, line: &dyn Display) -> bool {
    let before = text.len();
    // Formatting into a string does not fail.
    let _ = writeln!(text, "{line}");
    let fits = text.len() <= TEXT_BYTES_MAX - LAST_LINE_BYTES;
    if !fits {
        text.truncate(before);
    }
    fits
}

/// All tracers.
pub(super) fn status(tracers: &Tracers, engine: &Engine) -> String {
    let mut text = String::new();
    let modules = engine.modules();
    let (sites, refused) = modules.fold((0, 0), |(s, r), module| {
        (s + module.sites.len(), r + module.refused.len())
    });
    let open = tracers.open_sites();
    let functions = engine.modules().flat_map(|module| &module.functions);
    let sleds = functions.filter(|function| function.has_exits).count();
    let _ = writeln!(
        text,
        "sites={sites}\nopen={open}\nuntraceable={refused}\nsleds={sleds}"
    );
    // Where the processor checks return addresses none is replaced.
    let shadow_stack = if has_shadow_stack() { "on" } else { "off" };
    let _ = writeln!(text, "shadow_stack={shadow_stack}");
    let not_called = not_called();
    if not_called > 0 {
        push(&mut text, &format_args!("not_called={not_called}"));
    }
    for tracer in tracers.all() {
        let more = |text: &mut String| push_lines(text, &given_up(tracer));
        if !push(&mut text, &line_of(tracer)) || !triggers_of(tracer, &mut text) || !more(&mut text)
        {
            break;
        }
    }
    text
}

fn triggers_of(tracer: &Tracer, text: &mut String) -> bool {
    let mut triggers = tracer.options().triggers.iter().enumerate();
    triggers.all(|(n, trigger)| {
        let (name, functions) = (tracer.name(), tracer.triggered(n));
        let line = format_args!("trigger={name} {functions} {}", trigger.text());
        push(text, &line)
    })
}

/// What a budget did not allow: the tracer, its functions' shares of the CPU time, and their names.
pub(super) fn given_up(tracer: &Tracer) -> String {
    let mut text = String::new();
    for one in tracer.given_up().iter().take(GIVEN_UP_MAX) {
        let (tracer, name) = (tracer.name(), one.function.replace('\n', " "));
        let _ = writeln!(text, "given_up={tracer} {} {name}", one.ppm);
    }
    text
}

/// Adds lines; `false`: there is no room for all.
fn push_lines(text: &mut String, lines: &str) -> bool {
    lines.lines().all(|line| push(text, &line))
}

fn line_of(tracer: &Tracer) -> String {
    let options = tracer.options();
    let state = match (tracer.is_on(), tracer.is_held()) {
        (false, _) => "off",
        (true, true) => "leased",
        (true, false) => "on",
    };
    let mut line = format!(
        "tracer={} number={} kind={} state={state} default={} functions={} args={} result={}",
        tracer.name(),
        tracer.number(),
        options.kind.name(),
        tracer.is_default(),
        tracer.matched(),
        options.arguments,
        options.result,
    );
    if let Some(ns) = options.min_ns {
        let _ = write!(line, " min_ns={ns}");
    }
    if tracer.is_paused() {
        line.push_str(" paused=true");
    }
    if tracer.wants_snapshot() {
        line.push_str(" snapshot=true");
    }
    if let Some(ppm) = options.budget_ppm {
        let _ = write!(line, " budget_ppm={ppm}");
    }
    if let Some(ppm) = tracer.cost_ppm() {
        let _ = write!(line, " cost_ppm={ppm}");
    }
    line + " filter=" + &options.selection.text()
}

/// Functions from the `from`-th on, as far as they fit: those with sites that `selection` wants
/// (all, if it is empty), then, with `refused`, what cannot be traced. `next=` where it goes on.
pub(super) fn functions(
    engine: &mut Engine,
    selection: &Selection,
    from: usize,
    refused: bool,
) -> String {
    engine.rescan();
    let mut page = Page {
        text: String::new(),
        from,
        at: 0,
    };
    for module in engine.modules() {
        let path = module.path.display().to_string();
        let mut named = false;
        for site in module.sites.iter().filter(|s| s.kind == Kind::Entry) {
            let wanted = |(): ()| {
                let candidate = candidate(module, site);
                selection.is_empty() || selection.wants(&candidate)
            };
            let line = |(): ()| {
                let function = module.function(site);
                let symbol = function.map_or(&[][..], |f| &f.symbol);
                let state = if engine.is_open(site.id) { "on" } else { "off" };
                let size = function.map_or(0, |f| f.size);
                let exits = match function {
                    Some(function) if function.has_exits => "sleds",
                    Some(function) if function.has_no_end() => "none",
                    _ => "address",
                };
                let start = function.map_or(site.address, |f| f.address);
                let (at, name) = (site.address, one_line(module, symbol, start));
                format!("{state} {at:x} {size} {exits} {name}")
            };
            if !page.take(&path, &mut named, wanted, line) {
                return page.end();
            }
        }
        for one in module.refused.iter().filter(|_| refused) {
            let line = |(): ()| {
                let name = one_line(module, &one.symbol, one.address);
                format!("no {:x} {name}\t{}", one.address, one.reason)
            };
            if !page.take(&path, &mut named, |()| true, line) {
                return page.end();
            }
        }
    }
    page.text
}

/// A name that cannot be taken for two lines.
fn one_line(module: &Module, symbol: &[u8], address: u64) -> String {
    module.name_of(symbol, address).replace(['\n', '\t'], " ")
}

/// A part of a list.
struct Page {
    text: String,
    from: usize,
    at: usize,
}

impl Page {
    /// Adds an entry behind its module's name; `false`: there is no room for it.
    fn take(
        &mut self,
        module: &str,
        named: &mut bool,
        wanted: impl FnOnce(()) -> bool,
        line: impl FnOnce(()) -> String,
    ) -> bool {
        if self.at >= self.from && wanted(()) {
            let line = line(());
            let fits = if std::mem::replace(named, true) {
                push(&mut self.text, &line)
            } else {
                push(&mut self.text, &format_args!("module={module}\n{line}"))
            };
            // One that is longer than an answer is passed over.
            if !fits && !self.text.is_empty() {
                return false;
            }
        }
        self.at += 1;
        true
    }

    fn end(mut self) -> String {
        let _ = writeln!(self.text, "next={}", self.at);
        self.text
    }
}
