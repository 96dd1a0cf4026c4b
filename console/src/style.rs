//! Colours, and when they are used.

use std::env;
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

/// What `--color` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set; elsewhere if CLICOLOR_FORCE is
    #[default]
    Auto,
    /// Also in a pipe or a file
    Always,
    /// Nowhere
    Never,
}

/// What the command line says, once it was read.
static CHOSEN: OnceLock<Color> = OnceLock::new();

impl Color {
    /// Takes it for all that is printed from now on.
    pub fn choose(self) {
        let _ = CHOSEN.set(self);
    }
}

/// Escape sequences of colours for a terminal; empty strings where there are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    on: bool,
}

impl Style {
    /// Colours if `--color` asks for them; if it leaves it open, `NO_COLOR` forbids them and
    /// `CLICOLOR_FORCE` asks for them; else a terminal that knows them has them.
    pub fn detect() -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|v| !v.is_empty() && v != "0");
        let refused = env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
        let dumb = env::var_os("TERM").is_none_or(|t| t == "dumb");
        let on = match CHOSEN.get().copied().unwrap_or_default() {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if refused => false,
            Color::Auto if is_set("CLICOLOR_FORCE") => true,
            Color::Auto => !dumb && io::stdout().is_terminal(),
        };
        Self { on }
    }

    /// No colours.
    pub const fn none() -> Self {
        Self { on: false }
    }

    fn code(self, code: &'static str) -> &'static str {
        if self.on { code } else { "" }
    }

    /// Begins a heading.
    pub fn heading(self) -> &'static str {
        self.code("\x1b[1m")
    }

    /// Begins what is lost, damaged or dead.
    pub fn alarm(self) -> &'static str {
        self.code("\x1b[31m")
    }

    /// Begins a warning.
    pub fn warning(self) -> &'static str {
        self.code("\x1b[33m")
    }

    /// Begins what is beside the point.
    pub fn dim(self) -> &'static str {
        self.code("\x1b[2m")
    }

    /// Ends each of them.
    pub fn plain(self) -> &'static str {
        self.code("\x1b[0m")
    }

    /// Whether colours are used.
    pub fn is_on(self) -> bool {
        self.on
    }
}
