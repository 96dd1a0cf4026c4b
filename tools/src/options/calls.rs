//! Options that name calls, for the commands that show functions.

use ringmark_decoder::{Dump, Filter};

use crate::options::event_filter::TimeOptions;
use crate::options::threads;
use ringmark_console::{Failure, printable};

/// Options that name calls.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct CallOptions {
    /// Only calls that the function tracer of this name recorded
    #[arg(short = 'T', long, value_name = "NAME")]
    tracer: Option<String>,
    /// Only this thread; may be given several times
    #[arg(long, value_name = "TID", value_parser = threads::parse)]
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
        if let Some(bits) = dump.tracers_named(wanted.as_bytes()) {
            return Ok(Some(bits));
        }
        let names = dump.tracer_names().into_iter();
        let names = names.map(|name| printable(&String::from_utf8_lossy(name)));
        let there = match names.collect::<Vec<_>>().as_slice() {
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
        if self.times.is_given() {
            let text = "--from, --to, --around, --last: a profile counts the whole time together";
            return Err(Failure::usage(text));
        }
        Ok(())
    }

    /// The options that name times and threads, for a person.
    pub(crate) fn words(&self) -> Vec<String> {
        let tids = self.tid.iter().map(|tid| format!("--tid {tid}"));
        self.times.words().into_iter().chain(tids).collect()
    }

    /// The filter for reading.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn to_read(&self) -> Result<Filter, Failure> {
        self.of_threads(self.times.to_read()?)
    }

    /// The filter that lets the named threads and times of a trace pass.
    ///
    /// # Errors
    /// A text is no time.
    pub(crate) fn filter(&self, dump: &Dump) -> Result<Filter, Failure> {
        threads::require(&self.tid, dump)?;
        self.of_threads(self.times.within(dump)?)
    }

    fn of_threads(&self, mut filter: Filter) -> Result<Filter, Failure> {
        for tid in &self.tid {
            filter
                .tid(&tid.to_string())
                .map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok(filter)
    }
}
