//! The commands in groups, by what they are for, as the help of `ringmark` lists them.

use clap::Command;

use ringmark_console::width::{pad, wrap};

/// Heading of each group, and its commands, those first that people need first.
const GROUPS: [(&str, &[&str]); 4] = [
    (
        "Record",
        &["run", "record", "trace", "snapshot", "cut", "clean"],
    ),
    (
        "Look",
        &[
            "profile",
            "cat",
            "graph",
            "report",
            "list",
            "top",
            "events",
            "functions",
            "verify",
            "export",
        ],
    ),
    (
        "Fleet",
        &["stream", "collect", "compact", "query", "store", "certs"],
    ),
    ("Help", &["doctor", "demo", "help"]),
];

/// Columns before the text about a command.
const NAME_COLUMNS: usize = 15;
/// What `help` does: clap adds that command later.
const HELP: &str = "Print the help of a command";

/// The same command line, whose help lists commands in groups, in lines of that many columns.
pub(super) fn with_groups(command: Command, columns: usize) -> Command {
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{}\n{{options}}{{after-help}}",
        listed(&command, columns)
    );
    command.help_template(template)
}

/// All groups.
fn listed(command: &Command, columns: usize) -> String {
    let header = *command.get_styles().get_header();
    let mut text = String::new();
    for (heading, names) in GROUPS {
        text += &format!("\n{header}{heading}:{header:#}\n");
        let lines = names.iter().map(|name| line(command, name, columns));
        text.extend(lines);
    }
    text + &format!("\n{header}Options:{header:#}")
}

/// The line of a command, in several where there is no room.
fn line(command: &Command, name: &str, columns: usize) -> String {
    let literal = *command.get_styles().get_literal();
    let found = command.find_subcommand(name);
    let about = found.and_then(Command::get_about).map(ToString::to_string);
    let about = about.unwrap_or_else(|| HELP.to_owned());
    let mut end = String::new();
    pad(&mut end, NAME_COLUMNS - 2 - name.len());
    let about = wrap(
        &about,
        columns.saturating_sub(NAME_COLUMNS).max(NAME_COLUMNS),
    );
    let about = about.replace('\n', &format!("\n{}", " ".repeat(NAME_COLUMNS)));
    format!("  {literal}{name}{literal:#}{end}{about}\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::GROUPS;
    use crate::cli::Cli;

    #[test]
    fn each_command_is_in_one_group() {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut shown: Vec<_> = shown.map(clap::Command::get_name).collect();
        shown.push("help");
        let mut listed: Vec<_> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        shown.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, shown);
    }
}
