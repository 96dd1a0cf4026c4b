//! What a request says, as `key=value` lines.

use super::RequestError;
use crate::tracers::{Options, Selection, Syntax, TracerKind, Trigger};

/// What one request or program start says about a tracer.
#[derive(Debug, Default)]
pub(super) struct Wish<'a> {
    pub(super) tracer: Option<&'a str>,
    pub(super) kind: Option<TracerKind>,
    selection: Selection,
    arguments: Option<u8>,
    result: Option<bool>,
    min_bytes: Option<u64>,
    min_ns: Option<u64>,
    triggers: Option<Vec<Trigger>>,
    budget_ppm: Option<u64>,
    pub(super) lease_ms: Option<u64>,
    /// Of a list: where it goes on.
    pub(super) from: usize,
    /// Of a list: what is not traceable, and why.
    pub(super) refused: bool,
}

impl<'a> Wish<'a> {
    pub(super) fn read(lines: impl Iterator<Item = &'a str>) -> Result<Self, RequestError> {
        let mut wish = Self::default();
        let mut syntax = Syntax::Glob;
        for line in lines.filter(|line| !line.trim().is_empty()) {
            let (key, value) = line.split_once('=').unwrap_or((line, ""));
            match key {
                "tracer" => wish.tracer = Some(value),
                "kind" => wish.kind = Some(kind(value)?),
                "match" => syntax = syntax_of(value)?,
                "filter" => wish.selection.want(value, syntax)?,
                "notrace" => wish.selection.leave_out(value, syntax)?,
                "min_bytes" => wish.min_bytes = Some(number("min_bytes", value)?),
                "args" => wish.arguments = Some(arguments(value)?),
                "result" => wish.result = Some(value != "off"),
                "min_ns" => wish.min_ns = Some(number("min_ns", value)?),
                "trigger" if value == "none" => wish.triggers = Some(Vec::new()),
                "trigger" => {
                    let triggers = wish.triggers.get_or_insert_default();
                    triggers.push(Trigger::parse(value, syntax)?);
                }
                "budget_ppm" => wish.budget_ppm = Some(number("budget_ppm", value)?),
                "lease_ms" => wish.lease_ms = Some(number("lease_ms", value)?),
                "from" => wish.from = number("from", value)? as usize,
                "refused" => wish.refused = true,
                other => return Err(RequestError::Key(other.to_owned())),
            }
        }
        Ok(wish)
    }

    /// The functions that were named.
    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether functions were named, now or before.
    pub(super) fn selects(&self, options: &Options) -> bool {
        !self.selection.is_empty() || !options.selection.is_empty()
    }

    /// What is not said stays as it was.
    pub(super) fn change(self, options: &mut Options) {
        options.selection.replace(self.selection);
        options.selection.min_bytes = self.min_bytes.unwrap_or(options.selection.min_bytes);
        options.arguments = self.arguments.unwrap_or(options.arguments);
        options.result = self.result.unwrap_or(options.result);
        options.min_ns = self.min_ns.or(options.min_ns).filter(|ns| *ns > 0);
        if let Some(triggers) = self.triggers {
            options.triggers = triggers;
        }
        let budget = self.budget_ppm.or(options.budget_ppm);
        options.budget_ppm = budget.filter(|ppm| *ppm > 0);
    }
}

fn kind(text: &str) -> Result<TracerKind, RequestError> {
    let kinds = [
        TracerKind::Function,
        TracerKind::Graph,
        TracerKind::Callback,
        TracerKind::Profile,
    ];
    let found = kinds.into_iter().find(|kind| kind.name() == text);
    found.ok_or_else(|| wrong("kind", text, "function, graph, callback or profile"))
}

fn syntax_of(text: &str) -> Result<Syntax, RequestError> {
    match text {
        "glob" => Ok(Syntax::Glob),
        "regex" => Ok(Syntax::Regex),
        _ => Err(wrong("match", text, "glob or regex")),
    }
}

fn arguments(text: &str) -> Result<u8, RequestError> {
    let count = text.parse().ok().filter(|count| *count <= 6);
    count.ok_or_else(|| wrong("args", text, "a number up to 6"))
}

fn number(key: &'static str, text: &str) -> Result<u64, RequestError> {
    text.parse().map_err(|_| wrong(key, text, "a number"))
}

fn wrong(key: &'static str, found: &str, expected: &'static str) -> RequestError {
    RequestError::Value {
        key,
        found: found.to_owned(),
        expected,
    }
}
