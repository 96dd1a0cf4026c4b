//! Promise: the guide's reference is what the code has: each row of its pages is described, and no variable is read that
//! they do not describe. Shells complete the commands of all binaries, whose first lines are those that `ringmark` shows.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{LIMIT, written};
use ringmark_tests::{TempDir, run, workspace_root};

/// A page of the reference.
fn page(dir: &TempDir, name: &str) -> String {
    let file = dir.join("pages").join(format!("reference-{name}.md"));
    fs::read_to_string(file).expect("a page")
}

#[test]
fn nothing_is_without_a_description() {
    let dir = written("pages");
    for name in ["settings", "commands", "limits", "figures"] {
        let text = page(&dir, name);
        let rows: Vec<_> = text.lines().filter(|line| line.starts_with("| ")).collect();
        assert!(rows.len() > 5, "{name}");
        for row in rows {
            let cells = row.trim_matches('|').rsplit(" | ");
            let last = cells.map(str::trim).next().unwrap_or_default();
            assert!(last.len() > 2, "{name}: no description: {row}");
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
    /// Variables of others and those of a build, which no setting of Ringmark is.
    const OTHERS: [&str; 8] = [
        "PATH",
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "HOME",
        "RINGMARK_COMMIT",
        "RINGMARK_VERSION",
        "CARGO_MANIFEST_DIR",
        "CARGO_PKG_VERSION",
    ];
    let page = page(&written("settings"), "settings");
    let mut files = Vec::new();
    for name in [
        "attach",
        "c-api",
        "collector",
        "console",
        "decoder",
        "export",
        "function-tracer",
        "producer",
        "reader",
        "ring",
        "stream",
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

#[test]
fn help_fits_a_terminal() {
    let page = page(&written("help"), "commands");
    let wide = |line: &&str| line.starts_with("    ") && line.chars().count() > 4 + 80;
    let wide: Vec<_> = page.lines().filter(wide).collect();
    assert!(wide.is_empty(), "over 80 columns:\n{}", wide.join("\n"));
}

#[test]
fn shells_complete_the_commands_of_both_binaries() {
    let dir = written("completions");
    for script in ["ringmark", "_ringmark", "ringmark.fish"] {
        let text = fs::read_to_string(dir.join("completions").join(script)).expect("a script");
        for word in ["record", "collect", "status", "demo"] {
            assert!(text.contains(word), "{script}: {word}");
        }
        assert!(!text.contains("demo-job"), "{script}: a hidden command");
    }
}

#[test]
fn bash_offers_what_can_follow() {
    let dir = written("completions-bash");
    for (line, offered) in [
        ("ringmark rec", "record"),
        ("ringmark coll", "collect"),
        ("ringmark cat --no-p", "--no-pager"),
        ("ringmark trace sta", "start status"),
    ] {
        let script = r#"
source "$0"
read -ra COMP_WORDS <<<"$1"
COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
_ringmark ringmark "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
echo "${COMPREPLY[*]}"
"#;
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", script])
            .arg(dir.join("completions/ringmark"))
            .arg(line);
        let found = run(&mut bash, LIMIT).expect("bash").expect_code(0);
        assert_eq!(found.stdout_text().trim(), offered, "{line}");
    }
}

#[test]
fn ringmark_lists_the_commands_of_ringmark_stream_as_they_are() {
    let about = |all: &clap::Command, name: &str| {
        let found = all.find_subcommand(name).expect("a command");
        found.get_about().expect("a first line").to_string()
    };
    let streams = ringmark_stream::command_line();
    let fronts = ringmark_cli::command_line(clap::Command::new("none"));
    for command in streams.get_subcommands() {
        let name = command.get_name();
        assert_eq!(about(&fronts, name), about(&streams, name));
    }
}
