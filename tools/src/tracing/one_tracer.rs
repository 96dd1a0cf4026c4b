//! A process and one of its function tracers, as options.

use ringmark_format::tracer_text::{RequestLine, TracerLine};

/// Options that name one function tracer of one process.
#[derive(Debug, clap::Args)]
pub(crate) struct OneTracer {
    /// The process
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pub(crate) pid: u32,
    /// The function tracer of this name, instead of the process's default one
    #[arg(short = 'T', long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) tracer: Option<String>,
}

/// A name is a word in the lines of an answer.
fn parse_name(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!("found {text:?}, expected a name without spaces"));
    }
    Ok(text.to_owned())
}

impl OneTracer {
    /// As lines of a request: none for the default tracer.
    pub(crate) fn lines(&self) -> Vec<RequestLine<'_>> {
        let name = self.tracer.as_deref();
        name.map(RequestLine::Tracer).into_iter().collect()
    }

    /// As lines of a request, before `more`.
    pub(crate) fn lines_with<'a>(&'a self, more: &[RequestLine<'a>]) -> Vec<RequestLine<'a>> {
        [self.lines().as_slice(), more].concat()
    }

    /// Whether this is the tracer that an answer speaks of.
    pub(crate) fn is(&self, tracer: &TracerLine<'_>) -> bool {
        let name = self.tracer.as_deref();
        name.map_or(tracer.is_default, |name| tracer.name == name)
    }

    /// Its name for messages.
    pub(crate) fn name(&self) -> &str {
        self.tracer.as_deref().unwrap_or("the default tracer")
    }
}
