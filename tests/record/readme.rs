//! Promise: what README.md shows of its first program is what its first command prints.

use std::fs;

use ringmark_tests::binary::{self, built_example};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::{run, workspace_root};

/// The text between two lines, the second one excluded.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let from = text.find(begin).expect(begin) + begin.len();
    let rest = &text[from..];
    &rest[..rest.find(end).expect(end)]
}

/// Words without digits, and without the units that go with a time or a size: those differ.
fn shape(text: &str) -> Vec<String> {
    let is_unit = |word: &str| ["ns", "us", "ms", "s", "B", "KiB", "MiB"].contains(&word);
    let words = text
        .split_whitespace()
        .map(|word| word.trim_end_matches([',', ';']));
    let words = words.filter(|word| !is_unit(word));
    words
        .map(|word| {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                "0"
            } else {
                word
            }
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_first_program_is_recorded_by_the_first_command() {
    let readme = fs::read_to_string(workspace_root().join("README.md")).expect("README.md");
    let program = between(&readme, "```rust\n", "```");
    let example = workspace_root().join("producer/examples/requests.rs");
    let example = fs::read_to_string(example).expect("the example");
    let (_, code) = example.split_once("\n\n").expect("a heading, then code");
    assert_eq!(program, code);
    let shown = between(&readme, "$ ringmark run -- ./mine\n", "```");

    let fixture = Fixture::new("readme");
    let mut command = fixture.command(binary::path());
    command
        .args(["run", "--"])
        .arg(built_example("ringmark", "requests"));
    let done = run(command.current_dir(fixture.path(".")), SOON)
        .unwrap()
        .expect_code(0);
    let printed = format!("{}{}", done.stderr_text(), done.stdout_text());
    assert_eq!(shape(&printed), shape(shown), "printed:\n{printed}");
    let counts = |text: &str| -> Vec<String> {
        let rows = text
            .lines()
            .skip_while(|line| !line.starts_with("COUNT"))
            .filter(|line| !line.starts_with(['C', 'E']));
        rows.filter_map(|row| row.split_whitespace().next())
            .map(str::to_owned)
            .collect()
    };
    assert_eq!(counts(&printed), ["1,000", "1,000", "1,000"]);
    assert_eq!(counts(shown), counts(&printed));
}
