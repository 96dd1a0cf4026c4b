//! Promise: every help fits 80 columns.

use crate::common;

use common::Stage;

/// The subcommands that a help text lists.
fn listed(help: &str) -> Vec<String> {
    // Commands stand in groups. Arguments begin with a bracket, second lines further right.
    let lines = help.lines().take_while(|line| *line != "Options:");
    let names = lines.filter_map(|line| line.strip_prefix("  "));
    let names = names.filter_map(|line| line.split(' ').next());
    let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
    let names = names.filter(|name| is_name(name) && *name != "help");
    names.map(str::to_owned).collect()
}

#[test]
fn every_help_fits_80_columns() {
    let stage = Stage::new("columns");
    let mut left = vec![Vec::<String>::new()];
    let mut seen = 0;
    while let Some(words) = left.pop() {
        let line: Vec<&str> = words.iter().map(String::as_str).chain(["--help"]).collect();
        let help = stage.run(&line).expect_code(0).stdout_text();
        for text in help.lines() {
            assert!(text.chars().count() <= 80, "{line:?}: {text}");
        }
        left.extend(
            listed(&help)
                .into_iter()
                .map(|name| [&words[..], &[name]].concat()),
        );
        seen += 1;
    }
    assert!(seen >= 30, "{seen} texts");
}
