//! Promise: each manual page says how the command ends, what it reads from its environment, with an
//! example, and where to read on; no section is empty.

mod common;

use std::fs;
use std::process::Command;

use common::{LIMIT, written};
use ringmark_tests::{TempDir, run};

/// The pages of all commands, by name.
fn pages(dir: &TempDir) -> Vec<(String, String)> {
    let files = fs::read_dir(dir.join("man")).expect("pages");
    let page = |file: fs::DirEntry| {
        let text = fs::read_to_string(file.path()).expect("a page");
        (file.file_name().to_string_lossy().into_owned(), text)
    };
    files.map(|file| page(file.expect("a file"))).collect()
}

fn sections(page: &str) -> Vec<(&str, &str)> {
    let sections = page.split("\n.SH ").skip(1);
    sections
        .filter_map(|section| section.split_once('\n'))
        .collect()
}

#[test]
fn pages_have_their_sections() {
    let dir = written("man-pages");
    let pages = pages(&dir);
    assert!(pages.len() > 30, "{}", pages.len());
    for (name, page) in &pages {
        let sections = sections(page);
        for heading in [
            "EXIT STATUS",
            "ENVIRONMENT",
            "FILES",
            "EXAMPLES",
            "SEE ALSO",
        ] {
            let is_there = sections.iter().any(|(known, _)| *known == heading);
            assert!(is_there, "{name}: no {heading}");
        }
        for (heading, text) in &sections {
            assert!(!text.trim().is_empty(), "{name}: {heading} is empty");
        }
        assert!(!page.contains("EXTRA"), "{name}");
        let help = sections.iter().find(|(heading, _)| *heading == "NOTES");
        assert!(
            !help.is_some_and(|(_, text)| text.contains("Example")),
            "{name}"
        );
    }
    let of = |wanted: &str| &pages.iter().find(|(name, _)| name == wanted).expect("it").1;
    let cat = of("ringmark-cat.1");
    assert!(
        cat.contains(".SH EXAMPLES\n") && cat.contains("RINGMARK_PAGER"),
        "{cat}"
    );
    assert!(cat.ends_with("\\fBringmark\\fR(1)\n"), "{cat}");
    assert!(
        of("ringmark.1").contains("\\fBringmark\\-cat\\fR(1)"),
        "it names the others"
    );
}

/// Other pages that a page names are there.
#[test]
fn references_lead_somewhere() {
    let dir = written("man-references");
    let pages = pages(&dir);
    for (name, page) in &pages {
        let (_, also) = page.split_once(".SH SEE ALSO\n").expect("references");
        for line in also.lines() {
            let page = line.replace("\\fB", "").replace('\\', "");
            let page = page.split("fR").next().expect("a name");
            let is_there = pages.iter().any(|(known, _)| *known == format!("{page}.1"));
            assert!(is_there, "{name}: {line}");
        }
    }
}

/// What formats pages finds nothing wrong; without it the rest of this file has to do.
#[test]
fn groff_finds_nothing_wrong() {
    let dir = written("man-groff");
    for (name, _) in pages(&dir) {
        let mut groff = Command::new("groff");
        groff.args(["-Kutf8", "-man", "-ww", "-z", "-Tutf8"]);
        let Ok(found) = run(groff.arg(dir.join("man").join(&name)), LIMIT) else {
            return;
        };
        assert_eq!(found.stderr_text(), "", "{name}");
    }
}

#[test]
fn pages_name_the_variables_that_their_commands_use() {
    let dir = written("man-variables");
    let page = |name: &str| fs::read_to_string(dir.join("man").join(name)).expect("a page");
    let settings = fs::read_to_string(dir.join("pages/reference-settings.md")).expect("a page");
    let man = page("ringmark.1");
    let (_, variables) = man.split_once(".SH ENVIRONMENT\n").expect("variables");
    let variables = variables.split(".SH ").next().expect("a section");
    let named = variables
        .lines()
        .filter_map(|line| line.strip_prefix("\\fB"));
    for name in named {
        let name = name
            .trim_end_matches("\\fR")
            .split(',')
            .next()
            .expect("a name");
        assert!(settings.contains(&format!("`{name}`")), "{name}");
    }
    for (command, uses) in [("record", true), ("trace-start", false), ("certs", false)] {
        let page = page(&format!("ringmark-{command}.1"));
        assert_eq!(page.contains("RINGMARK_ASK_ENDS"), uses, "{command}");
        // Colours are for all.
        assert!(page.contains("NO_COLOR"), "{command}");
    }
}
