//! `ringmark-reference DIR`: writes what is made from the code when Ringmark is packaged or its guide becomes a book.
//!
//! - `DIR/man`: a manual page for each command
//! - `DIR/completions`: a script for bash, zsh and fish each
//! - `DIR/pages`: the guide's pages of settings, commands, limits and figures
#![forbid(unsafe_code)]

mod command_line;
mod completions;
mod figures;
mod limits;
mod man;
mod markdown;
mod settings;
mod variables;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

fn main() -> anyhow::Result<()> {
    let dir = std::env::args_os().nth(1).map(PathBuf::from);
    let dir = dir.context("expected a directory: ringmark-reference DIR")?;
    let all = ringmark_cli::command_line(ringmark_stream::command_line());
    man::write_pages(&made(&dir, "man")?, all.clone())?;
    completions::write_scripts(&made(&dir, "completions")?, all.clone())?;
    let pages = made(&dir, "pages")?;
    for (name, text) in [
        ("settings", settings::page()),
        ("commands", command_line::page(all)),
        ("limits", limits::page()),
        ("figures", figures::page()),
    ] {
        fs::write(pages.join(format!("reference-{name}.md")), text)?;
    }
    Ok(())
}

/// The directory `name` in `dir`, made where it is missing.
fn made(dir: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let made = dir.join(name);
    fs::create_dir_all(&made).with_context(|| made.display().to_string())?;
    Ok(made)
}
