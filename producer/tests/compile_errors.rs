//! What the compiler tells a program whose events it refuses: the limit or the grammar, and what to
//! do instead.
#![forbid(unsafe_code)]

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a library with this function body against `library`; what the compiler says.
fn compile(name: &str, body: &str, library: &Path) -> (bool, String) {
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.rs"));
    let text = format!("#![allow(unused)]\npub fn emits() {{\n    {body}\n}}\n");
    fs::write(&source, text).expect("a source file");
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "lib", "--emit", "obj"])
        .arg("-o")
        .arg(source.with_extension("o"))
        .arg("-L")
        .arg(format!(
            "dependency={}",
            library.parent().expect("deps").display()
        ))
        .arg("--extern")
        .arg(format!("ringmark={}", library.display()))
        .arg(&source)
        .output()
        .expect("rustc");
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.success(), errors)
}

/// The library that this test was built with, or another build of it: the newest that works.
fn library() -> PathBuf {
    let deps = env::current_exe().expect("this test");
    let files = fs::read_dir(deps.parent().expect("deps")).expect("deps");
    let mut found: Vec<_> = files
        .map(|file| file.expect("a file").path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libringmark-") && name.ends_with(".rlib")
        })
        .collect();
    found.sort_by_key(|path| fs::metadata(path).and_then(|data| data.modified()).ok());
    let works = |path: &PathBuf| compile("control", "ringmark::event!(\"fine\");", path).0;
    let library = found.into_iter().rev().find(works);
    library.expect("a build of ringmark that rustc can use")
}

fn arguments(count: usize) -> String {
    (0..count).map(|n| format!(", a{n} = {n}_u8")).collect()
}

#[test]
fn refusals_name_the_limit_and_the_way_out() {
    let library = library();
    let most = format!("ringmark::event!(\"a\"{});", arguments(32));
    assert!(compile("most", &most, &library).0);
    for (name, body, expected) in refused().into_iter().chain(wrong_values()) {
        let (compiled, errors) = compile(name, &body, &library);
        assert!(!compiled, "{body} compiles");
        for text in expected {
            assert!(errors.contains(text), "{body}: no {text:?} in\n{errors}");
        }
    }
}

/// Names, bodies that do not compile, and what the compiler says of each.
fn refused() -> Vec<(&'static str, String, &'static [&'static str])> {
    vec![
        (
            "too_many",
            format!("ringmark::event!(\"a\"{});", arguments(33)),
            &["more than 32 arguments", "a second event"][..],
        ),
        (
            "far_too_many",
            format!("let _span = ringmark::span!(\"a\"{});", arguments(100)),
            &["more than 32 arguments", "a second event"],
        ),
        (
            "level_twice",
            "ringmark::event!(level: Warn, level: Info, \"a\");".to_owned(),
            &["`level:` is given twice"],
        ),
        (
            "unknown_option",
            "ringmark::counter!(lvl: Warn, \"a\", 1_u8);".to_owned(),
            &["found `lvl:`", "expected the options `level: LEVEL,`"],
        ),
        (
            "no_name",
            "ringmark::event!(level: Warn,);".to_owned(),
            &["expected the name, a constant text"],
        ),
        (
            "no_value",
            "ringmark::counter!(\"depth\");".to_owned(),
            &["expected `counter!([OPTIONS,] NAME, VALUE)`"],
        ),
        (
            "no_argument",
            "ringmark::event!(\"a\", 3 + 4);".to_owned(),
            &["found `3 + 4`", "`name = ?value`"],
        ),
        (
            "no_value_type",
            "ringmark::event!(\"a\", v = vec![1_u8]);".to_owned(),
            &[
                "`Vec<u8>` cannot be an argument of an event",
                "`name = ?value` (Debug)",
            ],
        ),
        (
            "option_of_array",
            "ringmark::event!(\"a\", v = Some([1_u8]));".to_owned(),
            &["options of arrays are no arguments"],
        ),
    ]
}

/// Values that a counter or a flow cannot have.
fn wrong_values() -> Vec<(&'static str, String, &'static [&'static str])> {
    vec![
        (
            "counter_of_text",
            "ringmark::counter!(\"depth\", \"deep\");".to_owned(),
            &["the value of a counter is an integer or a float"],
        ),
        (
            "flow_of_float",
            "ringmark::flow!(\"job\", 1.5);".to_owned(),
            &["the id of a flow is an integer"],
        ),
        (
            "flow_of_array",
            "ringmark::flow!(\"job\", [1_u8; 2]);".to_owned(),
            &["the id of a flow is an integer"],
        ),
    ]
}
