//! Runs the blocks of a document as a reader would who types them, from the top to the bottom of
//! the page in one shell, in an empty directory.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command as Process;

use crate::document::{Block, Command, Note, read};
use crate::fixture::Fixture;
use crate::functions::LIMIT;
use crate::{Finished, binary, functions, likeness, run, workspace_root};

/// The pid that documents write for that of a program of the reader.
const PID: &str = "812";
/// Begins the line that the shell prints after each command.
const MARK: char = '\u{1}';

/// A command that was run.
#[derive(Debug)]
pub struct Ran {
    /// What the document has.
    pub command: Command,
    /// What was printed, line by line.
    pub printed: Vec<String>,
    /// Its exit status.
    pub status: i32,
    /// Numbers that differ from run to run.
    pub differ: Vec<String>,
    /// It is not of the page, but of a note.
    pub is_hidden: bool,
}

/// Runs all blocks of a document of the repository.
///
/// # Panics
/// When a block is of no kind that can be run, and does not say why it is not run.
#[must_use]
pub fn run_document(path: &str) -> Vec<Ran> {
    let fixture = Fixture::new("document");
    let mut steps = Vec::new();
    let mut script = String::from("exec 2>&1\ntrap 'kill -9 $(jobs -p) 2>/dev/null' EXIT\n");
    for block in read(path).iter().filter(|block| block.not_run().is_none()) {
        let differ = block.notes.iter().find_map(|note| match note {
            Note::Differ(numbers) => Some(numbers.clone()),
            _ => None,
        });
        let commands = block_commands(path, block, &fixture, &mut script);
        for (command, is_hidden) in commands {
            let text = words_replaced(&command.text, PID, "$PID");
            let number = steps.len();
            let _ = writeln!(
                script,
                "{{ {text}\n}} </dev/null\nprintf '\\n\\001{number} %s %s\\n' $? \"$PID\""
            );
            steps.push(Ran {
                command,
                printed: Vec::new(),
                status: -1,
                differ: differ.clone().unwrap_or_default(),
                is_hidden,
            });
        }
    }
    let file = fixture.path("script");
    fs::write(&file, script).expect("a script");
    let finished = run(&mut shell(&fixture, &file), 10 * LIMIT).expect("bash");
    collect(&finished, &fixture, &mut steps);
    steps
}

/// The commands of a block, those of its notes first. Files that it stands for are made by `script`
/// just before them.
fn block_commands(
    path: &str,
    block: &Block,
    fixture: &Fixture,
    script: &mut String,
) -> Vec<(Command, bool)> {
    let place = format!("{path}:{}", block.line);
    let mut commands = Vec::new();
    let mut is_known = false;
    script.push_str("cd\n");
    for note in &block.notes {
        match note {
            Note::Before(text) => {
                let text = text.clone();
                let (line, output) = (block.line, Vec::new());
                commands.push((Command { line, text, output }, true));
            }
            Note::File(name) => {
                let source = fixture.path(&format!("{}-{}", block.line, name.replace('/', "-")));
                fs::write(&source, &block.text).expect("a file of a document");
                let _ = writeln!(script, "install -m 644 -D '{}' '{name}'", source.display());
                is_known = true;
            }
            Note::CodeOf(file, name) | Note::Program(file, name) => {
                if let Note::CodeOf(..) = note {
                    expect_code(&place, block, file);
                }
                let _ = writeln!(script, "cp '{}' '{name}'", example(file).display());
                is_known = true;
            }
            Note::PartOf(file) => {
                expect_part(&place, block, file);
                is_known = true;
            }
            Note::NotRun(_) | Note::Differ(_) => {}
        }
    }
    let is_console = block.language == "console";
    assert!(is_known || is_console, "{place}: a block that is not run");
    if is_console {
        commands.extend(block.commands().into_iter().map(|command| (command, false)));
    }
    commands
}

/// The built program of this path: of a directory of `examples/`, or an example of the producer.
fn example(file: &str) -> PathBuf {
    if let Some(("examples", rest)) = file.split_once('/') {
        let (name, _) = rest.split_once('/').expect("a directory");
        return binary::built(name);
    }
    let name = Path::new(file).file_stem().expect("a name");
    let name = name.to_str().expect("text");
    binary::built(&format!("examples/{name}"))
}

fn source(file: &str) -> String {
    fs::read_to_string(workspace_root().join(file)).expect(file)
}

/// That a block is a file without its heading.
fn expect_code(place: &str, block: &Block, file: &str) {
    let code = source(file);
    let (_, code) = code.split_once("\n\n").expect("a heading, then code");
    assert_eq!(block.text, code, "{place}: expected the code of {file}");
}

/// That the lines of a block are a part of a file, however they are indented.
fn expect_part(place: &str, block: &Block, file: &str) {
    let plain = |text: &str| -> String {
        let lines = text.lines().map(str::trim);
        lines.map(|line| format!("{line}\n")).collect()
    };
    let is_part = plain(&source(file)).contains(&plain(&block.text));
    assert!(is_part, "{place}: expected a part of {file}");
}

fn shell(fixture: &Fixture, script: &Path) -> Process {
    let home = fixture.path("home");
    fs::create_dir(&home).expect("a directory");
    let tools = binary::path().parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut bash = fixture.command("bash");
    binary::forget_this_package(&mut bash);
    let real_home = std::env::home_dir().unwrap_or_default();
    for (name, default) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        let value = std::env::var_os(name);
        bash.env(name, value.unwrap_or(real_home.join(default).into()));
    }
    bash.args(["--norc".as_ref(), script.as_os_str()])
        .current_dir(&home)
        .env("CARGO_TARGET_DIR", tools.parent().expect("a directory"))
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("RINGMARK_LIB", functions::library())
        .env("RINGMARK_SOURCE", workspace_root())
        .env("HOME", home)
        .env_remove("RUST_BACKTRACE");
    bash
}

/// Gives each step what was printed in it.
fn collect(finished: &Finished, fixture: &Fixture, steps: &mut [Ran]) {
    let text = finished.stdout_text();
    let sessions = fixture.sessions().display().to_string();
    let text = text.replace(&sessions, "/dev/shm/ringmark-0");
    let text = text.replace(&fixture.path("home").display().to_string(), "~");
    let mut at = 0;
    let mut printed = Vec::new();
    for line in text.lines() {
        let Some(mark) = line.strip_prefix(MARK) else {
            printed.push(line.trim_end().to_owned());
            continue;
        };
        let mut words = mark.split(' ').map(str::to_owned).skip(1);
        let status = words.next().and_then(|word| word.parse().ok());
        let pid = words.next().unwrap_or_default();
        let lines = std::mem::take(&mut printed).into_iter();
        steps[at].printed = trimmed(lines.map(|l| words_replaced(&l, &pid, PID)).collect());
        steps[at].status = status.expect("a status");
        at += 1;
    }
    assert_eq!(at, steps.len(), "the shell ended early:\n{text}");
}

fn trimmed(mut lines: Vec<String>) -> Vec<String> {
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// `text` with each word `from` as `to`.
fn words_replaced(text: &str, from: &str, to: &str) -> String {
    if from.is_empty() {
        return text.to_owned();
    }
    let mut found = String::new();
    let mut rest = text;
    let is_part = |c: char| c.is_alphanumeric() || c == '.' || c == ',';
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        let is_word = !before.ends_with(is_part) && !after.starts_with(char::is_alphanumeric);
        found += before;
        found += if is_word { to } else { from };
        rest = after;
    }
    found + rest
}

impl Ran {
    /// What is wrong with it, as text for a person.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        let Command { line, text, output } = &self.command;
        let printed = self.printed.join("\n");
        if self.is_hidden {
            let is_well = self.status == 0;
            return (!is_well).then(|| format!("{line}: before it, `{text}` failed:\n{printed}"));
        }
        let shown = trimmed(output.clone());
        if likeness::alike(&shown, &self.printed, &self.differ) {
            let is_well = self.status == 0 || !shown.is_empty();
            return (!is_well).then(|| format!("{line}: `{text}`: exit status {}", self.status));
        }
        let shown = shown.join("\n");
        Some(format!(
            "{line}: `{text}`\n--- shown\n{shown}\n--- printed, exit status {}\n{printed}\n",
            self.status
        ))
    }

    /// Words whose alteration in the document was not found, and the number of those that were.
    #[must_use]
    pub fn unseen_alterations(&self) -> (Vec<Vec<String>>, usize) {
        let shown = trimmed(self.command.output.clone());
        let (unseen, seen): (Vec<_>, Vec<_>) = likeness::altered(&shown)
            .into_iter()
            .partition(|with| likeness::alike(with, &self.printed, &self.differ));
        (unseen, seen.len())
    }
}

/// The documents whose blocks are run: README.md, the pages of the guide, and the examples.
///
/// # Panics
/// When their directories cannot be read.
#[must_use]
pub fn documents() -> Vec<String> {
    let mut found = vec!["README.md".to_owned()];
    let mut dirs = vec!["docs/src".to_owned(), "examples".to_owned()];
    while let Some(dir) = dirs.pop() {
        let files = fs::read_dir(workspace_root().join(&dir)).expect("a directory");
        for file in files.flatten() {
            let path = format!("{dir}/{}", file.file_name().to_string_lossy());
            match file.path().is_dir() {
                true => dirs.push(path),
                false => found.push(path),
            }
        }
    }
    found.retain(|path| path.ends_with(".md"));
    found.sort();
    found
}

/// Reasons for blocks that are not run, by document and line.
#[must_use]
pub fn not_run() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for path in documents() {
        let blocks = read(&path);
        let reasons = blocks
            .iter()
            .filter_map(|block| Some((block.line, block.not_run()?)));
        found.extend(reasons.map(|(line, why)| (format!("{path}:{line}"), why.to_owned())));
    }
    found
}
