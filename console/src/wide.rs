//! The option against cutting.

use std::io;

use crate::columns;

/// Whether lines are made for the terminal.
#[derive(Debug, Clone, Copy, clap::Args)]
pub struct WideOption {
    /// Do not cut names and lines to the width of the terminal
    #[arg(long)]
    wide: bool,
}

impl WideOption {
    /// Width to which lines are made; `None`: standard output is no terminal, or all is wanted.
    pub fn columns(self) -> Option<usize> {
        columns(io::stdout()).filter(|_| !self.wide)
    }
}
