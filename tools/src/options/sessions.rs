//! Options that choose processes in trace files: where they ran, and which they are.

use ringmark_decoder::SessionChoice;

use ringmark_console::Failure;

/// Options that choose sessions by host and service.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SessionOptions {
    /// Only this host's processes in FILE: '*' is any text; may be given several times
    #[arg(long, value_name = "GLOB")]
    host: Vec<String>,
    /// Only processes of this service in FILE: '*' is any text; may be given several times
    #[arg(long, value_name = "GLOB")]
    service: Vec<String>,
}

impl SessionOptions {
    /// The choice of these and of a process, if one is named.
    pub(crate) fn choice(&self, pid: Option<u32>) -> SessionChoice {
        SessionChoice {
            hosts: self.host.clone(),
            services: self.service.clone(),
            pids: pid.into_iter().collect(),
            share: None,
        }
    }

    /// Checks that nothing is chosen: what is read has one process.
    ///
    /// # Errors
    /// A host or service is named.
    pub(crate) fn require_none(&self) -> Result<(), Failure> {
        if self.host.is_empty() && self.service.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(
            "--host, --service: found a running process, expected FILE to choose from",
        ))
    }
}
