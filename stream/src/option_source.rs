//! Where the options of a command come from: the command line and, with `--config`, a file.

use std::env;
use std::path::PathBuf;

use clap::FromArgMatches;
use clap::parser::ValueSource;

use crate::config_file;
use ringmark_console::Failure;

/// The command line, and the file that it names.
pub(crate) struct OptionSource {
    /// The command line of `ringmark`.
    all: clap::Command,
    /// Name of the command.
    name: &'static str,
}

impl OptionSource {
    pub(crate) fn new(all: clap::Command, name: &'static str) -> Self {
        Self { all, name }
    }

    /// The options. The file's count where the command line does not give the same option.
    ///
    /// # Errors
    /// The file cannot be read, or an option is wrong.
    pub(crate) fn read<A: FromArgMatches>(&self) -> Result<A, Failure> {
        let of_line = self.parse(Vec::new()).map_err(|error| wrong("", &error))?;
        let given = of_line
            .subcommand_matches(self.name)
            .cloned()
            .unwrap_or_default();
        let Some(path) = given.get_one::<PathBuf>("config") else {
            return args(&given).map_err(|error| wrong("", &error));
        };
        let mut command = self.all.clone();
        command.build();
        let its = command
            .find_subcommand(self.name)
            .cloned()
            .unwrap_or_default();
        let is_given = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
        let of_file = config_file::arguments(path, &its, is_given)?;
        let at = format!("{}: ", path.display());
        let parsed = self.parse(of_file).map_err(|error| wrong(&at, &error))?;
        let whole = parsed
            .subcommand_matches(self.name)
            .cloned()
            .unwrap_or_default();
        args(&whole).map_err(|error| wrong(&at, &error))
    }

    fn parse(&self, more: Vec<String>) -> Result<clap::ArgMatches, clap::Error> {
        let words = env::args_os().chain(more.into_iter().map(Into::into));
        self.all.clone().try_get_matches_from(words)
    }
}

fn args<A: FromArgMatches>(matches: &clap::ArgMatches) -> Result<A, clap::Error> {
    A::from_arg_matches(matches)
}

/// An error of clap as ours, with where it is.
fn wrong(at: &str, error: &clap::Error) -> Failure {
    let text = error.to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    Failure::usage(format!("{at}{}", text.trim_end()))
}
