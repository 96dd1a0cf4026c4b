//! Promise: who makes one of the usual mistakes is told what is wrong and what to do, at once, and
//! nothing is lost or changed by it.

#[path = "mistakes/files.rs"]
mod files;
#[path = "mistakes/processes.rs"]
mod processes;
#[path = "mistakes/runs.rs"]
mod runs;

use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, tool};
use ringmark_tests::{Finished, run};

/// A mistake: a command line, its exit code, what must be said and what must not.
struct Mistake<'a> {
    words: &'a str,
    code: i32,
    said: &'a [&'a str],
    unsaid: &'a [&'a str],
}

/// Makes each mistake in the fixture's directory.
fn expect_told(fixture: &Fixture, mistakes: &[Mistake<'_>]) {
    for mistake in mistakes {
        let mut command = tool(fixture);
        command.args(mistake.words.split_whitespace());
        expect_one(fixture, &mut command, mistake);
    }
}

fn expect_one(fixture: &Fixture, command: &mut Command, mistake: &Mistake<'_>) -> Finished {
    let finished = run(command.current_dir(fixture.path("")), LIMIT).expect("ringmark starts");
    let (out, errors) = (finished.stdout_text(), finished.stderr_text());
    let text = format!("{errors}{out}");
    println!("$ ringmark {}\n{text}", mistake.words);
    assert_eq!(finished.code(), mistake.code, "{}: {text}", mistake.words);
    for said in mistake.said {
        assert!(
            text.contains(said),
            "{}: no {said:?} in {text}",
            mistake.words
        );
    }
    for unsaid in mistake.unsaid {
        assert!(
            !text.contains(unsaid),
            "{}: {unsaid:?} in {text}",
            mistake.words
        );
    }
    finished
}
