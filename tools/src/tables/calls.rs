//! The calls in a trace, for the commands that show functions.

use ringmark_decoder::{Calls, Dump, Filter, Output, Session, Step};

use crate::options::event_filter::TimeOptions;
use crate::output::{Failure, printable};

/// Options that name calls.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CallOptions {
    /// Only calls that the function tracer of this name recorded
    #[arg(short = 'T', long, value_name = "NAME")]
    tracer: Option<String>,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID")]
    tid: Vec<u32>,
    #[command(flatten)]
    pub(crate) times: TimeOptions,
}

impl CallOptions {
    /// The bits of the tracer in each session; `None`: all tracers.
    ///
    /// # Errors
    /// No session has a tracer of this name.
    pub(crate) fn tracers(&self, dump: &Dump) -> Result<Option<Vec<u64>>, Failure> {
        let Some(wanted) = &self.tracer else {
            return Ok(None);
        };
        let bits: Vec<u64> = dump.sessions.iter().map(|s| bits(s, wanted)).collect();
        if bits.iter().any(|bits| *bits != 0) {
            return Ok(Some(bits));
        }
        let names = names(dump);
        let there = match names.as_slice() {
            [] => "the trace file has none".to_owned(),
            names => format!("there are: {}", names.join(", ")),
        };
        Err(Failure::usage(format!(
            "--tracer: no tracer {wanted:?}; {there}"
        )))
    }

    /// The name of the tracer, if one is named.
    pub(crate) fn tracer(&self) -> Option<&str> {
        self.tracer.as_deref()
    }

    /// Whether calls of the tracer with this name are meant.
    pub(crate) fn names(&self, tracer: &str) -> bool {
        self.tracer().is_none_or(|wanted| wanted == tracer)
    }

    /// Checks that no thread and no time is named: a profile counts all of them together.
    ///
    /// # Errors
    /// One is named.
    pub(crate) fn require_all(&self) -> Result<(), Failure> {
        if !self.tid.is_empty() {
            let text = "--tid: a profile counts all threads together";
            return Err(Failure::usage(text));
        }
        if self.times.build()?.has_time() {
            let text = "--from, --to: a profile counts the whole time together";
            return Err(Failure::usage(text));
        }
        Ok(())
    }

    /// The filter that lets the named threads and times pass.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let mut filter = self.times.build()?;
        for tid in &self.tid {
            filter
                .tid(&tid.to_string())
                .map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(filter)
    }
}

/// The bits of the tracers with this name.
fn bits(session: &Session, wanted: &str) -> u64 {
    let tracers = session.schema.functions().tracers();
    let named = tracers.filter(|(_, tracer)| tracer.name == wanted.as_bytes());
    named.fold(0, |bits, (number, _)| {
        bits | 1_u64.checked_shl(number).unwrap_or(0)
    })
}

/// The names of all tracers, each once, in order.
fn names(dump: &Dump) -> Vec<String> {
    let sessions = dump.sessions.iter();
    let all = sessions.flat_map(|s| s.schema.functions().tracers());
    let mut names: Vec<_> = all
        .map(|(_, tracer)| printable(&String::from_utf8_lossy(&tracer.name)))
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Whether a trace describes any function records.
pub(crate) fn has_functions(dump: &Dump) -> bool {
    let types = dump.sessions.iter().flat_map(|s| s.schema.types());
    types.into_iter().any(|ty| ty.function.is_some())
}

/// Gives `to` each event that the options mean, in order, with its steps: what it means for the calls
/// of its thread. Events that are no function records have no steps. The third argument is the number
/// of calls around the event.
///
/// Returns the calls that are still open.
///
/// # Errors
/// No session has a tracer of the name, or a text is no time.
pub(crate) fn walk<'d>(
    dump: &'d Dump,
    options: &CallOptions,
    mut to: impl FnMut(&Output<'d>, &[Step<'d>], usize),
) -> Result<Calls<'d>, Failure> {
    let filter = options.filter()?;
    let mut calls = Calls::new(options.tracers(dump)?);
    let mut steps = Vec::new();
    dump.events().for_each(|item| {
        if let Output::Lost(lost) = &item {
            calls.lose(lost);
        }
        if !filter.passes_item(&item) {
            return;
        }
        steps.clear();
        let mut depth = 0;
        if let Output::Event(event) = &item {
            depth = calls.depth(event);
            calls.take(event, |step| steps.push(step));
        }
        to(&item, &steps, depth);
    });
    Ok(calls)
}
