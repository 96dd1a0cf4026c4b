//! The page of commands, from the one definition of the command line.

use std::fmt::Write;

use clap::{Arg, Command};

use crate::markdown::{cell, code, table};
use ringmark_console::Exit;

const START: &str = "\
# Commands and exit codes

`docs/build` writes this page from the definition of the command line, which `ringmark help COMMAND`
shows, too. [Which command when](commands.md) leads to the one that you need. [JSON.md](../../format-spec/JSON.md)
describes what `--json` prints, [Settings](reference-settings.md) the environment variables.

## Exit codes

";

/// The page.
pub(crate) fn page(all: Command) -> String {
    let mut all = all.disable_help_subcommand(true);
    all.build();
    let codes = Exit::ALL.map(|(exit, meaning)| [exit.0.to_string(), meaning.to_owned()]);
    let mut page = format!("{START}{}\n", table(["exit code", "meaning"], codes));
    page += "`run` and `record -- CMD` end with CMD's status: 128 + the signal, 126 if CMD is not executable, 127 if it is\n";
    page +=
        "not found. If that is 0, they end with 1 when something was lost, refused or left out.\n";
    commands(&mut page, &all);
    page
}

/// Adds the commands inside this one, each followed by those inside it.
fn commands(page: &mut String, outer: &Command) {
    for command in outer.get_subcommands().filter(|c| !c.is_hide_set()) {
        add_command(page, command.clone());
        commands(page, command);
    }
}

fn add_command(page: &mut String, mut command: Command) {
    let usage = command.render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let about = command.get_about().map(ToString::to_string);
    let name = command.get_bin_name().unwrap_or_default();
    let _ = write!(page, "\n## {name}\n\n{}.\n\n", about.unwrap_or_default());
    let usages = usage.lines().map(|line| format!("    {}\n", line.trim()));
    page.extend(usages);
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    let rows: Vec<_> = command.get_arguments().filter(shown).map(row).collect();
    if !rows.is_empty() {
        let head = ["argument", "default", "meaning"];
        let _ = write!(page, "\n{}", table(head, rows));
    }
    if let Some(after) = command.get_after_help() {
        let text = after.to_string();
        let lines = text.lines().map(|line| match line {
            "" => "\n".to_owned(),
            line => format!("    {line}\n"),
        });
        page.push('\n');
        page.extend(lines);
    }
}

fn row(arg: &Arg) -> [String; 3] {
    let names: Vec<_> = arg.get_value_names().unwrap_or_default().iter().collect();
    let takes = arg.get_action().takes_values() && !arg.is_positional();
    let is_optional = arg
        .get_num_args()
        .is_some_and(|range| range.min_values() == 0);
    let value: String = match (takes, is_optional) {
        (true, false) => names.iter().map(|name| format!(" {name}")).collect(),
        (true, true) => names.iter().map(|name| format!("[={name}]")).collect(),
        (false, _) => String::new(),
    };
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let spelled: Vec<_> = short.into_iter().chain(long).collect();
    let what = match spelled.is_empty() {
        true => names.iter().map(ToString::to_string).collect(),
        false => spelled.join(", ") + &value,
    };
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults
        .map(|value| code(&value.to_string_lossy()))
        .collect();
    let is_flag = !arg.get_action().takes_values();
    let default = match is_flag {
        true => String::new(),
        false => defaults.join(", "),
    };
    let help = arg
        .get_long_help()
        .or(arg.get_help())
        .map(ToString::to_string);
    let mut meaning = cell(&help.unwrap_or_default());
    if !is_flag && !arg.is_hide_possible_values_set() {
        for value in arg
            .get_possible_values()
            .iter()
            .filter(|v| !v.is_hide_set())
        {
            let text = value
                .get_help()
                .map(|help| format!(": {}", cell(&help.to_string())));
            let _ = write!(
                meaning,
                "<br>`{}`{}",
                value.get_name(),
                text.unwrap_or_default()
            );
        }
    }
    [code(&what), default, meaning]
}
