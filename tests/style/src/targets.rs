//! The test targets of `tests/Cargo.toml`, made from the files of its folders: Cargo itself looks
//! in none of them, and would leave a file out without a word.

use std::collections::BTreeSet;

use super::sources::Source;

/// The manifest that declares them.
pub const MANIFEST: &str = "tests/Cargo.toml";

/// Folders of `tests/` without test targets: what tests share, the programs that they run, and
/// what they compare with.
const WITHOUT: [&str; 5] = ["golden", "independent", "programs", "src", "style"];

/// What stands above the targets, which end the manifest.
const HEAD: &str = "\
# One target for each file of a folder of tests. From here on
# `cargo run -p ringmark-style --bin declare-tests` writes this file.
";

/// The manifest with a target for each file `tests/AREA/NAME.rs`, in order of path.
///
/// # Errors
/// Two files of one name, or a manifest without the line that the targets follow.
pub fn manifest(sources: &[Source]) -> Result<String, String> {
    let old = sources.iter().find(|source| source.path == MANIFEST);
    let old = old.ok_or(format!("{MANIFEST} is missing"))?;
    let (kept, _) = old
        .text
        .split_once(HEAD)
        .ok_or(format!("{MANIFEST}: no line `{}`", HEAD.trim_end()))?;
    let mut text = format!("{kept}{HEAD}");
    let mut names = BTreeSet::new();
    for path in sources
        .iter()
        .filter_map(|source| source.path.strip_prefix("tests/"))
    {
        let Some(name) = target(path) else {
            continue;
        };
        if !names.insert(name) {
            return Err(format!(
                "tests/{path}: another folder has a test of this name"
            ));
        }
        text += &format!("\n[[test]]\nname = \"{name}\"\npath = \"{path}\"\n");
    }
    Ok(text)
}

/// The target that a file below `tests/` is.
fn target(path: &str) -> Option<&str> {
    let (folder, file) = path.split_once('/')?;
    let name = file.strip_suffix(".rs")?;
    (!WITHOUT.contains(&folder) && !name.contains('/')).then_some(name)
}

/// A manifest that is not what [`manifest`] makes of the files, and test files in no folder.
#[must_use]
pub fn check(sources: &[Source]) -> Vec<String> {
    let mut findings = Vec::new();
    let names = sources
        .iter()
        .filter_map(|source| source.path.strip_prefix("tests/"));
    let loose = names.filter(|name| name.ends_with(".rs") && !name.contains('/'));
    findings.extend(loose.map(|name| format!("tests/{name}: in no folder, so it never runs")));
    match manifest(sources) {
        Err(reason) => findings.push(reason),
        Ok(text) if sources.iter().all(|source| source.text != text) => findings.push(format!(
            "{MANIFEST}: its tests are not those of the folders: cargo run -p ringmark-style --bin declare-tests"
        )),
        Ok(_) => {}
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(manifest: &str, files: &[&str]) -> Vec<Source> {
        let files = files.iter().map(|path| Source::new(path, ""));
        files.chain([Source::new(MANIFEST, manifest)]).collect()
    }

    const FILES: [&str; 4] = [
        "tests/session/fork.rs",
        "tests/session/step/mod.rs",
        "tests/src/lib.rs",
        "tests/programs/emit.rs",
    ];

    #[test]
    fn a_manifest_names_the_files_of_the_folders() {
        let written = manifest(&sources(&format!("[package]\n{HEAD}old"), &FILES)).unwrap();
        assert!(written.starts_with("[package]\n#"));
        assert!(written.ends_with("\n\n[[test]]\nname = \"fork\"\npath = \"session/fork.rs\"\n"));
        assert_eq!(written.matches("[[test]]").count(), 1);
        assert!(check(&sources(&written, &FILES)).is_empty());
    }

    #[test]
    fn a_test_that_never_runs_is_found() {
        let written = manifest(&sources(HEAD, &FILES)).unwrap();
        let mut more = FILES.to_vec();
        more.push("tests/store/lost.rs");
        assert_eq!(check(&sources(&written, &more)).len(), 1);
        let gone = sources(&written, &FILES[1..]);
        assert_eq!(check(&gone).len(), 1);
        more.push("tests/loose.rs");
        assert_eq!(check(&sources(&written, &more)).len(), 2);
    }

    #[test]
    fn two_tests_of_one_name_and_a_manifest_without_the_line_are_errors() {
        let twice = ["tests/session/fork.rs", "tests/store/fork.rs"];
        assert!(manifest(&sources(HEAD, &twice)).is_err());
        assert!(manifest(&sources("[package]", &FILES)).is_err());
    }
}
