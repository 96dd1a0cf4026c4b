//! The binaries of tests: a `main.rs` names the files of its folder, and a manifest names it. Cargo would leave a file
//! that none of them names out without a word.

use super::sources::Source;

/// Folders of `tests/` without tests: what tests share, the programs that they run, what they compare with.
const WITHOUT: [&str; 6] = ["golden", "independent", "programs", "src", "steps", "style"];

/// Files of tests that never run.
#[must_use]
pub fn check(sources: &[Source]) -> Vec<String> {
    let paths = sources.iter().map(|source| source.path.as_str());
    paths
        .filter_map(|path| of_file(sources, path).err())
        .collect()
}

fn of_file(sources: &[Source], path: &str) -> Result<(), String> {
    let Some((folder, name)) = path
        .strip_suffix(".rs")
        .and_then(|path| path.rsplit_once('/'))
    else {
        return Ok(());
    };
    let text = |path: &str| sources.iter().find(|source| source.path == path);
    let (package, main) = match folder.rsplit_once('/') {
        Some(("tests", area)) if !WITHOUT.contains(&area) => ("tests", format!("{area}/main.rs")),
        Some((package, "tests")) => (package, "tests/main.rs".to_owned()),
        None if folder == "tests" && name != "build" => {
            return Err(format!("{path}: in no folder, so it never runs"));
        }
        _ => return Ok(()),
    };
    let manifest = text(&format!("{package}/Cargo.toml"));
    let manifest = manifest.ok_or(format!("{path}: {package} has no manifest"))?;
    // Cargo finds the files of `tests` itself, unless told not to.
    if package != "tests" && !manifest.text.contains("autotests = false") {
        return Ok(());
    }
    let has = |source: &Source, line: &str| source.text.lines().any(|found| found == line);
    if !has(manifest, &format!("path = \"{main}\"")) {
        return Err(format!("{}: no test of {main}", manifest.path));
    }
    let named =
        text(&format!("{package}/{main}")).is_some_and(|main| has(main, &format!("mod {name};")));
    if name == "main" || named || has(manifest, &format!("name = \"{name}\"")) {
        return Ok(());
    }
    Err(format!(
        "{path}: {package}/{main} does not name it, so it never runs"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: [(&str, &str); 8] = [
        ("tests/Cargo.toml", "path = \"session/main.rs\"\n"),
        ("tests/session/main.rs", "mod fork;\n"),
        ("tests/session/fork.rs", ""),
        ("tests/session/step/mod.rs", ""),
        ("tests/src/lib.rs", ""),
        (
            "ring/Cargo.toml",
            "autotests = false\nname = \"alone\"\npath = \"tests/main.rs\"\n",
        ),
        ("ring/tests/alone.rs", ""),
        ("c-api/tests/layout.rs", ""),
    ];

    fn found(more: &[(&str, &str)]) -> usize {
        let all = WHOLE.iter().chain(&[("c-api/Cargo.toml", "")]).chain(more);
        let sources: Vec<_> = all.map(|(path, text)| Source::new(path, text)).collect();
        check(&sources).len()
    }

    #[test]
    fn files_that_are_named_run() {
        assert_eq!(found(&[]), 0);
    }

    #[test]
    fn a_test_that_never_runs_is_found() {
        for path in [
            "tests/session/lost.rs",
            "tests/store/lost.rs",
            "tests/loose.rs",
            "ring/tests/lost.rs",
            "none/tests/lost.rs",
        ] {
            assert_eq!(found(&[(path, "")]), 1, "{path}");
        }
    }
}
