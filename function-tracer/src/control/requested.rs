//! What the lines of a request say together.

use ringmark_format::tracer_text::{MovedSite, RequestLine};

use super::request_error::RequestError;
use crate::tracers::{CallSelection, Selection, Syntax, TracerKind, TracerOptions, Trigger};

/// What one request says about a function tracer. What it leaves out is `None` or empty.
#[derive(Debug, Default)]
pub(super) struct Requested<'a> {
    pub(super) tracer: Option<&'a str>,
    pub(super) kind: Option<TracerKind>,
    selection: Selection,
    arguments: Option<u8>,
    result: Option<bool>,
    min_bytes: Option<u64>,
    min_ns: Option<u64>,
    max_depth: Option<u32>,
    inside: Option<Selection>,
    callers: Option<Selection>,
    triggers: Option<Vec<Trigger>>,
    budget_ppm: Option<u64>,
    pub(super) lease_ms: Option<u64>,
    /// First entry of a list that is requested.
    pub(super) from: usize,
    /// Whether a list is to name untraceable functions with their reasons.
    pub(super) refused: bool,
    /// The module of moved sites: its base and its build id.
    pub(super) module: Option<(u64, &'a str)>,
    pub(super) moved: Vec<MovedSite<'a>>,
    /// Whether more moved sites of that module are to come.
    pub(super) more: bool,
    /// The process whose sites are waited for.
    pub(super) awaited: Option<u32>,
    /// Whether jumps were put in the place of several instructions.
    pub(super) put: bool,
    /// Whether a profile tracer that is off begins to count at 0.
    pub(super) anew: bool,
}

impl<'a> Requested<'a> {
    /// Joins the lines of a request.
    ///
    /// # Errors
    /// A pattern or a trigger cannot be understood.
    pub(super) fn read(lines: &[RequestLine<'a>]) -> Result<Self, RequestError> {
        let mut requested = Self::default();
        let mut syntax = Syntax::Glob;
        for line in lines {
            match *line {
                RequestLine::Tracer(name) => requested.tracer = Some(name),
                RequestLine::Kind(kind) => requested.kind = Some(kind),
                RequestLine::Match(of_next) => syntax = of_next,
                RequestLine::Filter(pattern) => requested.selection.want(pattern, syntax)?,
                RequestLine::Notrace(pattern) => requested.selection.leave_out(pattern, syntax)?,
                RequestLine::MinBytes(bytes) => requested.min_bytes = Some(bytes),
                RequestLine::Args(count) => requested.arguments = Some(count),
                RequestLine::Result(is_wanted) => requested.result = Some(is_wanted),
                RequestLine::MinNs(ns) => requested.min_ns = Some(ns),
                RequestLine::MaxDepth(levels) => requested.max_depth = Some(levels),
                RequestLine::Inside(pattern) => add_to(&mut requested.inside, pattern, syntax)?,
                RequestLine::Caller(pattern) => add_to(&mut requested.callers, pattern, syntax)?,
                RequestLine::NoTriggers => requested.triggers = Some(Vec::new()),
                RequestLine::Trigger(text) => {
                    let triggers = requested.triggers.get_or_insert_default();
                    triggers.push(Trigger::parse(text, syntax)?);
                }
                RequestLine::BudgetPpm(ppm) => requested.budget_ppm = Some(ppm),
                RequestLine::LeaseMs(ms) => requested.lease_ms = Some(ms),
                RequestLine::From(at) => requested.from = at as usize,
                RequestLine::Refused => requested.refused = true,
                RequestLine::Module { base, build_id } => requested.module = Some((base, build_id)),
                RequestLine::Moved(site) => requested.moved.push(site),
                RequestLine::More => requested.more = true,
                RequestLine::Put => requested.put = true,
                RequestLine::Anew => requested.anew = true,
                RequestLine::Await(pid) => requested.awaited = Some(pid),
            }
        }
        Ok(requested)
    }

    /// The functions that the request names.
    pub(super) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether functions are named, by the request or by the tracer's present options.
    pub(super) fn selects(&self, options: &TracerOptions) -> bool {
        !self.selection.is_empty() || !options.selection.is_empty()
    }

    /// Changes `options` as requested; what the request leaves out stays.
    pub(super) fn change(self, options: &mut TracerOptions) {
        options.selection.replace(self.selection);
        options.selection.min_bytes = self.min_bytes.unwrap_or(options.selection.min_bytes);
        options.arguments = self.arguments.unwrap_or(options.arguments);
        options.result = self.result.unwrap_or(options.result);
        options.min_ns = self.min_ns.or(options.min_ns).filter(|ns| *ns > 0);
        let before = std::mem::take(&mut options.calls);
        let max_depth = self.max_depth.or(before.max_depth);
        options.calls = CallSelection {
            max_depth: max_depth.filter(|levels| *levels > 0),
            inside: self.inside.unwrap_or(before.inside),
            callers: self.callers.unwrap_or(before.callers),
        };
        if let Some(triggers) = self.triggers {
            options.triggers = triggers;
        }
        let budget = self.budget_ppm.or(options.budget_ppm);
        options.budget_ppm = budget.filter(|ppm| *ppm > 0);
    }
}

/// Adds a pattern to functions that a line names; an empty one says that there are none.
fn add_to(
    functions: &mut Option<Selection>,
    pattern: &str,
    syntax: Syntax,
) -> Result<(), RequestError> {
    let functions = functions.get_or_insert_default();
    if !pattern.is_empty() {
        functions.want(pattern, syntax)?;
    }
    Ok(())
}
