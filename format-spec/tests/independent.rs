//! The reader in Python (`tests/independent`), which shares no code with us, passes its tests over
//! the test vectors; and the vectors are what their scripts make.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn python(directory: &str, arguments: &[&str]) -> Output {
    Command::new("python3")
        .args(arguments)
        .current_dir(root().join(directory))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("python3 (3.11 or later, standard library only) is not installed")
}

fn passes(directory: &str, arguments: &[&str]) -> Output {
    let run = python(directory, arguments);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{arguments:?} failed:\n{said}");
    run
}

#[test]
fn the_independent_reader_passes_its_tests() {
    let run = passes("tests/independent", &["-m", "unittest", "test_reader"]);
    let said = String::from_utf8_lossy(&run.stderr);
    assert!(said.contains("Ran 1") && said.contains("OK"), "{said}");
}

#[test]
fn the_vectors_are_what_their_script_makes() {
    passes("tests/independent", &["make_vectors.py", "--check"]);
}

#[test]
fn the_vectors_of_ticks_and_streams_are_what_their_scripts_make() {
    for name in ["ticks", "stream"] {
        let run = passes("format-spec/vectors", &[&format!("{name}.py")]);
        let committed = std::fs::read(root().join(format!("format-spec/vectors/{name}.txt")));
        assert!(
            run.stdout == committed.expect("the vectors"),
            "{name}.txt is not what {name}.py writes"
        );
    }
}
