//! Manual pages, from the one definition of the command line.

use std::path::Path;

use clap::builder::Resettable;
use clap_mangen::Man;
use ringmark_console::Exit;

use crate::variables;

/// Writes a page for each command of `all` into a directory: ringmark.1, ringmark-record.1, …
pub(crate) fn write_pages(dir: &Path, all: clap::Command) -> anyhow::Result<()> {
    // Pages of `help` would only repeat those of the commands.
    let mut command = all.disable_help_subcommand(true);
    command.build();
    write_page(dir, &command)
}

/// A page: what clap knows of the command, then what man pages have and help does not.
fn page(mut command: clap::Command) -> anyhow::Result<Vec<u8>> {
    let after = command.get_after_help().map(ToString::to_string);
    let (notes, examples) = split(after.as_deref().unwrap_or_default());
    let see_also = see_also(&command);
    let environment = environment(&command);
    let is_whole = command
        .get_display_name()
        .is_none_or(|name| name == "ringmark");
    // The exit codes have a section of their own.
    let notes = if is_whole { "" } else { notes };
    command = command.after_help(Resettable::Reset);
    let mut page = Vec::new();
    Man::new(command).render(&mut page)?;
    for (heading, text) in [
        ("NOTES", verbatim(notes)),
        ("EXIT STATUS", exit_status(is_whole)),
        ("ENVIRONMENT", environment),
        ("FILES", files()),
        ("EXAMPLES", verbatim(examples)),
        ("SEE ALSO", see_also),
    ] {
        if !text.is_empty() {
            page.extend_from_slice(format!(".SH {heading}\n{text}").as_bytes());
        }
    }
    Ok(page)
}

/// The text below the options, and the examples at its end.
fn split(after: &str) -> (&str, &str) {
    let at = ["Examples:", "Example:"].into_iter().find_map(|word| {
        let at = after.find(word)?;
        Some((at, at + word.len()))
    });
    match at {
        Some((at, end)) => (after[..at].trim_end(), after[end..].trim_matches('\n')),
        None => (after.trim_end(), ""),
    }
}

/// Lines as they stand.
fn verbatim(text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines = text.lines().map(|line| format!("\\&{}\n", escaped(line)));
    format!(".nf\n{}.fi\n", lines.collect::<String>())
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-")
}

fn exit_status(is_whole: bool) -> String {
    let codes = Exit::ALL.into_iter();
    let mut text: String = codes
        .map(|(code, meaning)| format!(".TP\n\\fB{}\\fR\n{meaning}\n", code.0))
        .collect();
    if is_whole {
        text += ".PP\n'run' and 'record \\-\\- CMD' exit with the status of CMD: 128 + its signal, 126 if it \
                 cannot be executed, 127 if it is not found. Where that is 0, they exit with 1 if something \
                 was lost, refused or left out.\n"
            .trim_start();
    }
    // A line that begins with a quote would be a request.
    text.replace("\n'", "\n\\&'")
}

/// The files that commands read and write where none is named.
fn files() -> String {
    let files = [
        (
            "/dev/shm/ringmark\\-UID",
            "Sessions of the programs of a user, unless RINGMARK_DIR names another directory.",
        ),
        ("ringmark.rmk", "The trace file, in the current directory."),
    ];
    let file = |(name, text)| format!(".TP\n\\fI{name}\\fR\n{text}\n");
    files.map(file).concat()
}

/// The pages of the command around this one, and of those in it.
fn see_also(command: &clap::Command) -> String {
    let name = command.get_display_name().unwrap_or("ringmark");
    let around = name.rsplit_once('-').map(|(around, _)| around.to_owned());
    let inside = command.get_subcommands().filter(|c| !c.is_hide_set());
    let inside = inside.map(|inside| format!("{name}-{}", inside.get_name()));
    let pages = around.into_iter().chain(inside);
    let pages: Vec<_> = pages
        .map(|page| format!("\\fB{}\\fR(1)", escaped(&page)))
        .collect();
    pages.join(",\n") + "\n"
}

/// Writes the page of a command, and those of the commands in it.
fn write_page(dir: &Path, command: &clap::Command) -> anyhow::Result<()> {
    for inside in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_page(dir, inside)?;
    }
    let file = Man::new(command.clone()).get_filename();
    Ok(std::fs::write(dir.join(file), page(command.clone())?)?)
}

/// The section about the variables that a command uses; the page of `ringmark` has all.
fn environment(command: &clap::Command) -> String {
    // As in `ringmark-trace-start`.
    let whole = command.get_display_name().unwrap_or_default();
    let verb = whole.split('-').nth(1);
    let used = variables::of_command(verb).into_iter();
    used.map(|variable| {
        let text = variable.effect.replace('`', "");
        format!(".TP\n\\fB{}\\fR\n{text}\n", variable.name)
    })
    .collect()
}
