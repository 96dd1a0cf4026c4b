//! Promise: C++ that gcc cannot link with room for sites, or only without the sites of a whole file,
//! has them all with the flags that the guide names.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{LIMIT, SITES, calls, ringmark, tool};
use ringmark_tests::{Finished, require_tools, run, workspace_root};

const FUNCTIONS: [&str; 6] = [
    "Square::sides()",
    "main",
    "make()",
    "other(Shape&)",
    "own(Shape&)",
    "scaled(int)",
];

fn built(fixture: &Fixture, flags: &str) -> (PathBuf, Finished) {
    let program = fixture.path("shapes");
    let _ = std::fs::remove_file(&program);
    let mut command = Command::new("g++");
    command.current_dir(workspace_root().join("tests/programs/functions/shapes"));
    command.args(format!("{SITES} {flags} other.cc main.cc -o").split_whitespace());
    let finished = run(command.arg(&program), LIMIT).expect("g++");
    (program, finished)
}

/// Those of `FUNCTIONS` that can be traced.
fn traceable(fixture: &Fixture, program: &Path) -> BTreeSet<&'static str> {
    let listed = ringmark(fixture, "functions", &[program]).expect_code(0);
    let listed = listed.stdout_text();
    let is_listed = |name: &&str| listed.contains(&format!(" {name}  "));
    FUNCTIONS.into_iter().filter(is_listed).collect()
}

/// What the linker says, as the guide quotes it.
fn quoted() -> Vec<String> {
    let guide = std::fs::read_to_string(workspace_root().join("docs/src/functions.md"));
    let guide = guide.expect("the guide");
    let quote = guide.split('`').find(|text| text.contains("discarded"));
    let quote = quote.expect("the linker's words").replace('\n', " ");
    quote.split(" … ").map(str::to_owned).collect()
}

#[test]
fn a_program_that_does_not_link_links_with_the_flag_of_the_guide() {
    if !require_tools(&["g++"]) {
        return;
    }
    let fixture = Fixture::new("fn-cpp");
    let (program, finished) = built(&fixture, "-DOWN_FIRST");
    if finished.code() == 0 {
        println!("this g++ has a section of entries for each function");
        assert_eq!(traceable(&fixture, &program).len(), FUNCTIONS.len());
    } else {
        // Its quotes are those of the system's language.
        let said = finished.stderr_text();
        let said: String = said.chars().filter(|c| !"`'‘’".contains(*c)).collect();
        for part in quoted() {
            assert!(said.contains(&part), "{part}: {said}");
        }
    }
    let (program, finished) = built(&fixture, "-DOWN_FIRST -flto");
    let _ = finished.expect_code(0);
    assert_eq!(traceable(&fixture, &program), BTreeSet::from(FUNCTIONS));
    let dump = fixture.path("shapes.rmk");
    let mut command = tool(&fixture);
    command.args(["run", "--kind", "graph", "-o"]).arg(&dump);
    let _ = run(command.arg("--").arg(&program), LIMIT)
        .expect("it starts")
        .expect_code(0);
    let mut found = calls(&fixture, "", &dump);
    found.retain(|name, _| FUNCTIONS.contains(&name.as_str()));
    let counts =
        FUNCTIONS.map(|name| (name.to_owned(), if name.contains("sides") { 2 } else { 1 }));
    assert_eq!(found, BTreeMap::from(counts));
}

/// The linker takes the other file's copy of this file's first function, and drops the entries of
/// all that follow it.
#[test]
fn a_file_whose_entries_are_dropped_has_them_with_the_flag_of_the_guide() {
    if !require_tools(&["g++"]) {
        return;
    }
    let fixture = Fixture::new("fn-cpp-dropped");
    let without: BTreeSet<_> = FUNCTIONS
        .into_iter()
        .filter(|name| *name != "scaled(int)")
        .collect();
    let (program, finished) = built(&fixture, "");
    let _ = finished.expect_code(0);
    let found = traceable(&fixture, &program);
    println!("without -flto: {found:?}");
    let is_mended = found == without;
    assert!(is_mended || !found.contains("own(Shape&)"), "{found:?}");
    let (program, finished) = built(&fixture, "-flto");
    let _ = finished.expect_code(0);
    assert_eq!(traceable(&fixture, &program), without);
}
