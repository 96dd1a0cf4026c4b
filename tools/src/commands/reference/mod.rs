//! `reference`: writes the pages of the guide that list what the code has: settings, commands,
//! limits and figures. A test compares the committed pages with these.

mod command_line;
mod figures;
mod limits;
mod markdown;
mod settings;

use std::io::Write;

use crate::output::{Exit, Sink};

/// Print a page of the guide's reference
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The page
    page: Page,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Page {
    Settings,
    Commands,
    Limits,
    Figures,
}

impl Args {
    /// Prints the page; `all` is the command line.
    pub(crate) fn run(self, all: clap::Command) -> anyhow::Result<Exit> {
        let text = match self.page {
            Page::Settings => settings::page(),
            Page::Commands => command_line::page(all),
            Page::Limits => limits::page(),
            Page::Figures => figures::page(),
        };
        let mut out = Sink::direct();
        out.write_all(text.as_bytes())?;
        out.finish()?;
        Ok(Exit::FINE)
    }
}
