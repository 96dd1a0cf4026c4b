//! Where the options of `collect` come from: the command line and, with `--config`, a file, which is
//! read again while the collector runs.

use std::env;
use std::path::PathBuf;

use clap::FromArgMatches;
use clap::parser::ValueSource;
use ringmark_collector::CollectorSettings;

use super::args::Args;
use crate::config_file;
use crate::log::LogOptions;
use ringmark_console::Failure;

/// Name of the command.
const NAME: &str = "collect";

/// The command line, and the file that it names.
pub(super) struct OptionSource {
    /// The command line of `ringmark`.
    all: clap::Command,
}

impl OptionSource {
    pub(super) fn new(all: clap::Command) -> Self {
        Self { all }
    }

    /// The options. The file's count where the command line does not give the same option.
    ///
    /// # Errors
    /// The file cannot be read, or an option is wrong.
    pub(super) fn read(&self) -> Result<Args, Failure> {
        let of_line = self.parse(Vec::new()).map_err(|error| wrong("", &error))?;
        let given = of_line
            .subcommand_matches(NAME)
            .cloned()
            .unwrap_or_default();
        let Some(path) = given.get_one::<PathBuf>("config") else {
            return args(&given).map_err(|error| wrong("", &error));
        };
        let mut command = self.all.clone();
        command.build();
        let collect = command.find_subcommand(NAME).cloned().unwrap_or_default();
        let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
        let of_file = config_file::arguments(path, &collect, is_given)?;
        let at = format!("{}: ", path.display());
        let parsed = self.parse(of_file).map_err(|error| wrong(&at, &error))?;
        let whole = parsed.subcommand_matches(NAME).cloned().unwrap_or_default();
        args(&whole).map_err(|error| wrong(&at, &error))
    }

    fn parse(&self, more: Vec<String>) -> Result<clap::ArgMatches, clap::Error> {
        let words = env::args_os().chain(more.into_iter().map(Into::into));
        self.all.clone().try_get_matches_from(words)
    }

    /// Reads the options again and hands them to the collector, which was started with `before`.
    /// If anything is wrong, the collector goes on as before. Returns how to write notices from now on.
    ///
    /// # Errors
    /// What is wrong.
    pub(super) fn reload(
        &self,
        before: &Args,
        settings: &CollectorSettings,
    ) -> anyhow::Result<LogOptions> {
        let now = self.read()?;
        if now.json.is_on() != before.json.is_on() {
            return Err(Failure::usage("json: a change needs a restart").into());
        }
        if now.status_file != before.status_file {
            return Err(Failure::usage("status-file: a change needs a restart").into());
        }
        settings.change(now.collector_options()?)?;
        Ok(now.log)
    }
}

fn args(matches: &clap::ArgMatches) -> Result<Args, clap::Error> {
    Args::from_arg_matches(matches)
}

/// An error of clap as ours, with where it is.
fn wrong(at: &str, error: &clap::Error) -> Failure {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    Failure::usage(format!("{at}{}", text.trim_end()))
}
