//! Which files may hold `unsafe`, and which crates forbid it.

use super::scan::{Scanned, has_word, line_of, words};
use super::sources::Source;

const HINT: &str = "If a memory map, a pointer into the ring or a system call really needs it \
    there, add the file to UNSAFE_FILES in tests/style/src/lists.rs and say why in the commit.";

/// Files with `unsafe` that are not `allowed`, and allowed ones that no longer need it.
#[must_use]
pub fn unsafe_files(sources: &[Source], allowed: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for source in sources.iter().filter(|source| source.is_rust()) {
        let code = Scanned::new(&source.text).code;
        let Some(at) = words(&code, "unsafe").next() else {
            continue;
        };
        used.push(source.path.as_str());
        if !allowed.contains(&source.path.as_str()) {
            let line = line_of(&code, at);
            findings.push(format!(
                "{}:{line}: `unsafe` in a file that may not hold it. {HINT}",
                source.path
            ));
        }
    }
    let idle = allowed.iter().filter(|path| !used.contains(path));
    findings.extend(idle.map(|path| {
        format!("{path}: listed in UNSAFE_FILES, holds no `unsafe`: take it off the list")
    }));
    findings
}

/// Crates (directories with `src/`) in none of whose sources `unsafe` is allowed and whose root
/// file does not say so to the compiler.
#[must_use]
pub fn crates_without_forbid(sources: &[Source], dirs: &[String], allowed: &[&str]) -> Vec<String> {
    let roots = dirs.iter().filter(|dir| {
        let src = format!("{dir}/src/");
        !allowed.iter().any(|path| path.starts_with(&src))
    });
    roots.flat_map(|dir| missing_forbid(sources, dir)).collect()
}

fn missing_forbid(sources: &[Source], dir: &str) -> Vec<String> {
    let paths = [format!("{dir}/src/lib.rs"), format!("{dir}/src/main.rs")];
    let roots = sources.iter().filter(|source| paths.contains(&source.path));
    let lacking = roots.filter(|source| !forbids(&source.text));
    lacking
        .map(|source| {
            format!(
                "{}: needs `#![forbid(unsafe_code)]`: no file of this crate may hold `unsafe`",
                source.path
            )
        })
        .collect()
}

fn forbids(text: &str) -> bool {
    let code = Scanned::new(text).code;
    let inner = code.match_indices("#![forbid(").map(|(at, _)| &code[at..]);
    inner
        .map(|rest| rest.split(']').next().unwrap_or_default())
        .any(|rest| has_word(rest, "unsafe_code"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_file_is_found_with_its_line() {
        let sources = [Source::new(
            "decoder/src/a.rs",
            "// unsafe\nfn a() { unsafe { b() } }",
        )];
        let found = unsafe_files(&sources, &[]);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("decoder/src/a.rs:2:"), "{}", found[0]);
    }

    #[test]
    fn comments_lints_and_strings_are_fine() {
        let text = "#![deny(unsafe_code)]\n// unsafe\nconst A: &str = \"unsafe\";";
        assert!(unsafe_files(&[Source::new("a/src/a.rs", text)], &[]).is_empty());
    }

    #[test]
    fn the_list_shrinks() {
        let sources = [Source::new("ring/src/a.rs", "fn a() {}")];
        assert_eq!(
            unsafe_files(&sources, &["ring/src/a.rs", "ring/src/gone.rs"]).len(),
            2
        );
    }

    #[test]
    fn a_safe_crate_must_say_so() {
        let dirs = ["x".to_owned()];
        let bare = [Source::new("x/src/lib.rs", "// #![forbid(unsafe_code)]\n")];
        assert_eq!(crates_without_forbid(&bare, &dirs, &[]).len(), 1);
        assert!(crates_without_forbid(&bare, &dirs, &["x/src/map.rs"]).is_empty());
        let safe = [Source::new(
            "x/src/lib.rs",
            "#![no_std]\n#![forbid(unsafe_code)]\n",
        )];
        assert!(crates_without_forbid(&safe, &dirs, &[]).is_empty());
    }
}
