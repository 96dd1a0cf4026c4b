//! Documents with blocks of code: what each block is, and what its notes say of it.
//!
//! A note is an HTML comment directly above a block, so that readers of the page do not see it:
//!
//! | note | meaning |
//! | --- | --- |
//! | `not run: REASON` | the block is neither run nor compared |
//! | `file: NAME` | the block is written to NAME, for the commands that follow |
//! | `code of: PATH, as NAME` | the block is this file without its heading; its program is NAME |
//! | `program: PATH, as NAME` | the program of this file is NAME; the page does not show its code |
//! | `part of: PATH` | the block is a part of this file, which another test builds |
//! | `before: SHELL` | what happens before the block, such as a program that is started; `PID` is the pid 812 of the text |
//! | `differ: NUMBER...` | numbers that differ with each run, alike wherever the block has them |

use std::fs;

use crate::workspace_root;

/// What a note above a block says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// Not run, for this reason.
    NotRun(String),
    /// Written to a file of this name.
    File(String),
    /// The code of a file of the repository, whose program has this name.
    CodeOf(String, String),
    /// The same of a file that the page does not show.
    Program(String, String),
    /// A part of a file of the repository.
    PartOf(String),
    /// Commands that come first.
    Before(String),
    /// Numbers that differ with each run.
    Differ(Vec<String>),
}

/// A block of code with its notes.
#[derive(Clone, Debug)]
pub struct Block {
    /// Line of its first line of code, from 1.
    pub line: usize,
    /// What stands after the backticks.
    pub language: String,
    /// The code.
    pub text: String,
    /// Its notes.
    pub notes: Vec<Note>,
}

/// A command of a block, with what the document shows of its output.
#[derive(Clone, Debug)]
pub struct Command {
    /// Its line, from 1.
    pub line: usize,
    /// The command.
    pub text: String,
    /// The lines that follow it.
    pub output: Vec<String>,
}

/// The blocks of a document of the repository.
///
/// # Panics
/// When it cannot be read, or has a note that is none.
#[must_use]
pub fn read(path: &str) -> Vec<Block> {
    let text = fs::read_to_string(workspace_root().join(path)).expect(path);
    blocks(&text).unwrap_or_else(|(line, error)| panic!("{path}:{line}: {error}"))
}

/// The blocks of a text; the error: its line, and what is wrong there.
///
/// # Errors
/// A note is none, or a block has no end.
pub fn blocks(text: &str) -> Result<Vec<Block>, (usize, String)> {
    let mut found = Vec::new();
    let mut notes = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if let Some(start) = line.strip_prefix("<!-- ") {
            let rest = lines.by_ref();
            let words = comment(start, rest).ok_or((number, "a comment without end".to_owned()))?;
            notes.push(note(&words).map_err(|error| (number, error))?);
        } else if let Some(language) = line.strip_prefix("```") {
            let inner: Vec<_> = lines
                .by_ref()
                .map(|(l, _)| l)
                .take_while(|l| *l != "```")
                .collect();
            found.push(Block {
                line: number + 1,
                language: language.to_owned(),
                text: inner.iter().map(|l| format!("{l}\n")).collect(),
                notes: std::mem::take(&mut notes),
            });
        } else if !line.is_empty() && !notes.is_empty() {
            return Err((number, "a note that no block follows".to_owned()));
        }
    }
    Ok(found)
}

/// The words of a comment that may go over several lines.
fn comment<'t>(start: &str, rest: impl Iterator<Item = (&'t str, usize)>) -> Option<String> {
    let mut words = start.to_owned();
    let mut rest = rest;
    while !words.ends_with("-->") {
        words = format!("{words}\n{}", rest.next()?.0);
    }
    words.truncate(words.len() - "-->".len());
    Some(words.trim().to_owned())
}

fn note(words: &str) -> Result<Note, String> {
    let unknown = || format!("`{words}` is no note");
    let (kind, value) = words.split_once(':').ok_or_else(unknown)?;
    let value = value.trim().to_owned();
    match kind {
        "not run" if !value.is_empty() => Ok(Note::NotRun(value)),
        "file" => Ok(Note::File(value)),
        "code of" | "program" => {
            let (path, name) = value.split_once(", as ").ok_or_else(unknown)?;
            let (path, name) = (path.to_owned(), name.to_owned());
            Ok(match kind {
                "program" => Note::Program(path, name),
                _ => Note::CodeOf(path, name),
            })
        }
        "part of" => Ok(Note::PartOf(value)),
        "before" => Ok(Note::Before(value)),
        "differ" => Ok(Note::Differ(
            value.split_whitespace().map(str::to_owned).collect(),
        )),
        _ => Err(unknown()),
    }
}

impl Block {
    /// The commands of a block of a terminal: a line begins with `$ `, and goes on after a `\`.
    ///
    /// # Panics
    /// When it begins with an output.
    #[must_use]
    pub fn commands(&self) -> Vec<Command> {
        let mut commands: Vec<Command> = Vec::new();
        let mut goes_on = false;
        for (line, number) in self.text.lines().zip(self.line..) {
            if let Some(text) = line.strip_prefix("$ ") {
                commands.push(Command {
                    line: number,
                    text: text.to_owned(),
                    output: Vec::new(),
                });
            } else {
                let last = commands.last_mut().expect("a command before an output");
                match goes_on {
                    true => last.text = format!("{}\n{line}", last.text),
                    false => last.output.push(line.to_owned()),
                }
            }
            goes_on = line.ends_with('\\') && (goes_on || line.starts_with("$ "));
        }
        commands
    }

    /// Why it is not run, where a note says so.
    #[must_use]
    pub fn not_run(&self) -> Option<&str> {
        self.notes.iter().find_map(|note| match note {
            Note::NotRun(reason) => Some(reason.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Text.\n\n<!-- before: a &\nb -->\n<!-- differ: 1 2 -->\n```console\n$ c \\\n  d\nout\n$ e\n```\nText.\n";

    #[test]
    fn blocks_have_their_notes_and_commands() {
        let found = blocks(TEXT).unwrap();
        let [block] = &found[..] else {
            panic!("{found:?}")
        };
        assert_eq!((block.line, block.language.as_str()), (7, "console"));
        let differ = Note::Differ(vec!["1".to_owned(), "2".to_owned()]);
        assert_eq!(block.notes, [Note::Before("a &\nb".to_owned()), differ]);
        let [first, second] = &block.commands()[..] else {
            panic!("{block:?}")
        };
        assert_eq!((first.line, first.text.as_str()), (7, "c \\\n  d"));
        assert_eq!(first.output, ["out"]);
        assert_eq!((second.line, second.output.len()), (10, 0));
    }

    #[test]
    fn what_is_no_note_is_named_with_its_line() {
        for (text, line) in [
            ("a\n<!-- not run: -->\n```\n```\n", 2),
            ("<!-- nonsense -->\n", 1),
            ("<!-- file: a.c -->\nText between.\n```c\n```\n", 2),
            ("<!-- file: a.c\n", 1),
        ] {
            assert_eq!(blocks(text).map_err(|(line, _)| line).err(), Some(line));
        }
    }
}
