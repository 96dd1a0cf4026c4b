//! Promise: every help fits 80 columns. Manual pages have the variables that commands use.

mod common;

use std::fs;

use common::Stage;
use ringmark_tests::workspace_root;

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

#[test]
fn manual_pages_name_the_variables_that_their_commands_use() {
    let stage = Stage::new("man");
    let _ = stage.run(&["man", "pages"]).expect_code(0);
    let man = stage.run(&["man"]).expect_code(0).stdout_text();
    let settings =
        fs::read_to_string(workspace_root().join("docs/src/reference-settings.md")).unwrap();
    let (_, variables) = man.split_once(".SH ENVIRONMENT\n").expect("variables");
    let variables = variables.split(".SH ").next().unwrap();
    for name in variables
        .lines()
        .filter_map(|line| line.strip_prefix("\\fB"))
    {
        let name = name.trim_end_matches("\\fR").split(',').next().unwrap();
        assert!(settings.contains(&format!("`{name}`")), "{name}");
    }
    for (command, uses) in [("record", true), ("trace-start", false), ("certs", false)] {
        let page = fs::read_to_string(stage.path(&format!("pages/ringmark-{command}.1")));
        let page = page.unwrap();
        assert_eq!(page.contains("RINGMARK_ASK_ENDS"), uses, "{command}");
        // Colours are for all.
        assert!(page.contains("NO_COLOR"), "{command}");
    }
}
