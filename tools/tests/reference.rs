//! Promise: the guide's reference is what the code has: the committed pages are those that
//! `ringmark reference` writes (`RINGMARK_BLESS=1` writes them), and no variable is read that they
//! do not describe.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::Stage;
use ringmark_tests::workspace_root;

fn page_file(page: &str) -> PathBuf {
    workspace_root().join(format!("docs/src/reference-{page}.md"))
}

fn expect_committed(page: &str) {
    let stage = Stage::new("reference");
    let written = stage.run(&["reference", page]).expect_code(0).stdout_text();
    let file = page_file(page);
    if std::env::var("RINGMARK_BLESS").is_ok_and(|v| v == "1") {
        fs::write(&file, &written).expect("the page can be written");
    }
    let committed = fs::read_to_string(&file).expect("the page; RINGMARK_BLESS=1 writes it");
    let file = file.display();
    for (found, expected) in committed.lines().zip(written.lines()) {
        assert_eq!(found, expected, "{file}: RINGMARK_BLESS=1 writes it anew");
    }
    assert_eq!(
        committed, written,
        "{file}: RINGMARK_BLESS=1 writes it anew"
    );
}

#[test]
fn settings_are_those_of_the_code() {
    expect_committed("settings");
}

#[test]
fn commands_are_those_of_the_code() {
    expect_committed("commands");
}

#[test]
fn limits_are_those_of_the_code() {
    expect_committed("limits");
}

#[test]
fn figures_are_those_of_the_code() {
    expect_committed("figures");
}

#[test]
fn nothing_is_without_a_description() {
    for page in ["settings", "commands", "limits", "figures"] {
        let text = fs::read_to_string(page_file(page)).unwrap();
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert!(rows.len() > 5, "{page}");
        for row in rows {
            let cells = row.trim_matches('|').rsplit(" | ");
            let last = cells.map(str::trim).next().unwrap_or_default();
            assert!(last.len() > 2, "{page}: no description: {row}");
        }
    }
}

/// Files of Rust below a folder, without tests.
fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("a folder").flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let is_left_out = ["tests", "target", "benches", "examples"]
            .iter()
            .any(|n| name == *n);
        if path.is_dir() && !is_left_out {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Variables that the text reads: arguments of `var` and `var_os`, and all names of ours.
fn variables_read(text: &str) -> Vec<String> {
    let is_name = |name: &&str| {
        name.len() > 1
            && name
                .chars()
                .all(|c| c.is_ascii_uppercase() || "_0123456789".contains(c))
    };
    let text_of = |rest: &str| rest.split('"').next().unwrap_or_default().to_owned();
    let read = ["env::var(\"", "var_os(\""];
    let read = read
        .iter()
        .flat_map(|call| text.split(call).skip(1).map(text_of));
    let ours = text.split("\"RINGMARK").skip(1);
    let ours = ours.map(|rest| format!("RINGMARK{}", text_of(rest)));
    read.chain(ours)
        .filter(|name| is_name(&name.as_str()))
        .collect()
}

#[test]
fn each_variable_that_is_read_is_described() {
    /// Variables of others, which no setting of Ringmark is.
    const OTHERS: [&str; 4] = ["PATH", "LD_PRELOAD", "LD_LIBRARY_PATH", "HOME"];
    let page = fs::read_to_string(page_file("settings")).unwrap();
    let mut files = Vec::new();
    for name in [
        "attach",
        "c-api",
        "collector",
        "decoder",
        "export",
        "function-tracer",
        "producer",
        "reader",
        "ring",
        "tools",
    ] {
        sources(&workspace_root().join(name), &mut files);
    }
    let mut known = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for name in variables_read(&text) {
            if OTHERS.contains(&name.as_str()) {
                continue;
            }
            assert!(
                page.contains(&format!("`{name}`")),
                "{}: {name}",
                file.display()
            );
            known += 1;
        }
    }
    assert!(known > 20, "{known} places");
}
