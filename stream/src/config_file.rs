//! A configuration file in place of a long command line: its keys are the long options of the
//! command.
//!
//! `keep-size = "20G"` is `--keep-size 20G`, `init = true` is `--init`, a list gives an option
//! several times. `${NAME}` in a text stands for a variable of the environment.

use std::env;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command};
use toml::{Table, Value};

use ringmark_console::Failure;
use ringmark_reader::regular_file;

/// Options that have no place in a file: they say what to do, and where the file is.
const NOT_IN_FILE: [&str; 4] = ["config", "check", "help", "version"];

/// The arguments that a file stands for, without those of options that are given otherwise.
///
/// # Errors
/// It cannot be read, is no TOML, or has a key that is no option of `command`.
pub(crate) fn arguments(
    path: &Path,
    command: &Command,
    is_given: impl Fn(&str) -> bool,
) -> Result<Vec<String>, Failure> {
    let at = |text: String| Failure::usage(format!("{}: {text}", path.display()));
    let (bytes, _) = regular_file::read(path).map_err(|error| at(error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|error| at(error.to_string()))?;
    let table: Table = text.parse().map_err(|error| at(mistake(&text, &error)))?;
    let mut arguments = Vec::new();
    for (key, value) in &table {
        let option = option(command, key).map_err(at)?;
        let mut of_key = Vec::new();
        let added = add(&mut of_key, key, value);
        added.map_err(|why| at(format!("{key}: {why}")))?;
        if !is_given(option.get_id().as_str()) {
            arguments.append(&mut of_key);
        }
    }
    Ok(arguments)
}

/// Where a text is no TOML, and why, in one line.
fn mistake(text: &str, error: &toml::de::Error) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    let message = error.message().replace('\n', "; ");
    format!("line {line}, column {column}: {message}")
}

/// The option that a key stands for.
fn option<'c>(command: &'c Command, key: &str) -> Result<&'c Arg, String> {
    let mut options = command.get_arguments();
    let option = options.find(|option| option.get_long() == Some(key));
    let allowed = option.filter(|_| !NOT_IN_FILE.contains(&key));
    allowed.ok_or_else(|| {
        let name = command.get_name();
        let meant = suggestion(command, key);
        let meant = meant.map_or_else(String::new, |meant| format!(", did you mean {meant}?"));
        format!("{key}: expected a long option of 'ringmark {name}'{meant}, see its --help")
    })
}

/// The option that is spelled much like a key.
fn suggestion(command: &Command, key: &str) -> Option<String> {
    let words = [command.get_name().to_owned(), format!("--{key}")];
    let error = command.clone().try_get_matches_from(words).err()?;
    match error.get(ContextKind::SuggestedArg)? {
        ContextValue::String(option) => Some(option.trim_start_matches("--").to_owned()),
        _ => None,
    }
}

fn add(arguments: &mut Vec<String>, key: &str, value: &Value) -> Result<(), String> {
    match value {
        Value::Boolean(true) => arguments.push(format!("--{key}")),
        Value::Boolean(false) => {}
        Value::String(text) => arguments.push(format!("--{key}={}", substituted(text)?)),
        Value::Integer(number) => arguments.push(format!("--{key}={number}")),
        Value::Array(all) => all.iter().try_for_each(|one| add(arguments, key, one))?,
        other => {
            let found = other.type_str();
            return Err(format!(
                "found a {found}, expected a text, a whole number, true, false or a list"
            ));
        }
    }
    Ok(())
}

/// A text with the values of variables in place of `${NAME}`.
fn substituted(text: &str) -> Result<String, String> {
    let mut done = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, later) = after.split_once('}').ok_or("found ${ without }")?;
        let value = env::var(name).map_err(|_| format!("{name} is not set in the environment"))?;
        done.push_str(before);
        done.push_str(&value);
        rest = later;
    }
    Ok(done + rest)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<Vec<String>, String> {
        read_with("none", text)
    }

    fn read_with(given: &str, text: &str) -> Result<Vec<String>, String> {
        let name = format!("ringmark-config-{}-{:p}", std::process::id(), text);
        let path = env::temp_dir().join(name);
        fs::write(&path, text).unwrap();
        let known = ["listen", "keep-size", "init", "connections"];
        let known = known.map(|long| Arg::new(long).long(long));
        let command = Command::new("collect").args(known);
        let read = arguments(&path, &command, |id| id == given);
        fs::remove_file(&path).unwrap();
        read.map_err(|error| error.to_string())
    }

    #[test]
    fn keys_are_options() {
        let text =
            "listen = ['tcp://a:1', 'unix:///b']\nkeep-size = '20G'\ninit = true\nconnections = 7";
        let mut found = read(text).unwrap();
        found.sort();
        let expected = [
            "--connections=7",
            "--init",
            "--keep-size=20G",
            "--listen=tcp://a:1",
        ];
        assert_eq!(found[..4], expected);
        assert_eq!(found[4], "--listen=unix:///b");
        assert_eq!(read("init = false").unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_mistake_is_told_in_one_line() {
        let told = read("init = true\nlisten = = 1").unwrap_err();
        assert!(
            told.contains("line 2, column ") && !told.contains('\n'),
            "{told}"
        );
        let told = read("keep-sise = '20G'").unwrap_err();
        assert!(told.contains("did you mean keep-size?"), "{told}");
        let told = read("zzz = 1").unwrap_err();
        assert!(!told.contains("did you mean"), "{told}");
    }

    #[test]
    fn what_is_given_otherwise_is_left_out_and_checked() {
        let text = "keep-size = '20G'\nconnections = 7";
        assert_eq!(read_with("keep-size", text).unwrap(), ["--connections=7"]);
        let told = read_with("keep-size", "keep-size = 1.5").unwrap_err();
        assert!(told.contains("keep-size: found a float"), "{told}");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            (
                "keepsize = '1G'",
                "keepsize: expected a long option of 'ringmark collect'",
            ),
            ("config = 'x'", "config: expected a long option"),
            ("keep-size = 1.5", "keep-size: found a float"),
            (
                "keep-size = '${RINGMARK_NO_SUCH}'",
                "RINGMARK_NO_SUCH is not set",
            ),
            ("keep-size = '${x'", "found ${ without }"),
            ("keep-size =", "line 1, column 12: "),
        ] {
            let told = read(text).unwrap_err();
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn variables_stand_for_their_values() {
        let path = env::var("PATH").unwrap();
        assert_eq!(substituted("a${PATH}b").unwrap(), format!("a{path}b"));
        assert_eq!(substituted("a$b").unwrap(), "a$b");
    }
}
