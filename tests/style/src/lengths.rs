//! Lengths of files and functions, as a ratchet: what is too long today is listed with its
//! length, and the list only shrinks.

use std::collections::BTreeMap;

use super::scan::{Scanned, body, closing, line_of, words};
use super::sources::Source;

/// Most lines of a file.
pub const FILE_LINES_MAX: usize = 450;
/// Most lines of a function, from `fn` to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 60;

/// `file PATH` or `fn PATH NAME` → lines.
pub type Lengths = BTreeMap<String, usize>;

/// Everything that is longer than allowed, tests and benchmarks left out.
#[must_use]
pub fn too_long(sources: &[Source]) -> Lengths {
    let mut found = Lengths::new();
    for source in sources
        .iter()
        .filter(|source| source.is_rust() && !source.is_test())
    {
        let lines = source.text.lines().count();
        if lines > FILE_LINES_MAX {
            found.insert(format!("file {}", source.path), lines);
        }
        for (name, lines) in functions(&Scanned::new(&source.text).product) {
            if lines > FUNCTION_LINES_MAX {
                found.insert(format!("fn {} {name}", source.path), lines);
            }
        }
    }
    found
}

/// Name and lines of every function with a body.
fn functions(code: &str) -> impl Iterator<Item = (&str, usize)> {
    words(code, "fn").filter_map(|at| {
        let rest = code[at + 2..].trim_start();
        let end = rest.find(|c: char| !(c == '_' || c == '$' || c.is_alphanumeric()))?;
        let open = body(code, at)?;
        let has_body = end > 0 && code.as_bytes()[open] == b'{';
        let last = line_of(code, closing(code, open) - 1);
        has_body.then(|| (&rest[..end], last - line_of(code, at) + 1))
    })
}

/// Reads the ratchet file: one `file PATH LINES` or `fn PATH NAME LINES` a line, `#` comments.
///
/// # Errors
/// The line that is neither.
pub fn parse_ratchet(text: &str) -> Result<Lengths, String> {
    let lines = text.lines().map(str::trim);
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(entry).collect()
}

fn entry(line: &str) -> Result<(String, usize), String> {
    let (key, lines) = line.rsplit_once(' ').ok_or_else(|| line.to_owned())?;
    Ok((key.to_owned(), lines.parse().map_err(|_| line.to_owned())?))
}

/// What grew or is new, and entries that are larger than needed or no longer needed.
#[must_use]
pub fn compare(ratchet: &Lengths, actual: &Lengths) -> Vec<String> {
    let mut findings = Vec::new();
    for (what, &lines) in actual {
        match ratchet.get(what) {
            None => findings.push(format!("{what}: {lines} lines, at most {FILE_LINES_MAX} (file) or {FUNCTION_LINES_MAX} (function): split it")),
            Some(&listed) if lines > listed => findings.push(format!("{what}: grew from {listed} to {lines} lines")),
            Some(&listed) if lines < listed => findings.push(format!("{what}: {lines} lines now: write {lines} in tests/style/ratchet.txt")),
            Some(_) => {}
        }
    }
    let idle = ratchet.keys().filter(|what| !actual.contains_key(*what));
    findings.extend(
        idle.map(|what| format!("{what}: fine now: take it out of tests/style/ratchet.txt")),
    );
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(lines: usize) -> String {
        format!(
            "/// Doc.\nfn long<const N: usize>(a: [u8; 3]) -> [u8; 2] {{\n{}}}\n",
            "x();\n".repeat(lines - 2)
        )
    }

    #[test]
    fn a_long_function_is_found_and_a_fitting_one_is_not() {
        let fits = Source::new("a/src/a.rs", &function(60));
        assert!(too_long(&[fits]).is_empty());
        let long = Source::new("a/src/a.rs", &function(61));
        assert_eq!(
            too_long(&[long]),
            Lengths::from([("fn a/src/a.rs long".into(), 61)])
        );
    }

    #[test]
    fn a_long_file_is_found_outside_tests() {
        let text = "const A: u8 = 0;\n".repeat(451);
        let found = too_long(&[
            Source::new("a/src/a.rs", &text),
            Source::new("a/tests/a.rs", &text),
        ]);
        assert_eq!(found, Lengths::from([("file a/src/a.rs".into(), 451)]));
    }

    #[test]
    fn the_ratchet_only_shrinks() {
        let ratchet = parse_ratchet("# why\nfile a 500\nfn b f 70\nfn c g 80\n").unwrap();
        let actual = Lengths::from([
            ("file a".into(), 501),
            ("fn b f".into(), 65),
            ("fn d h".into(), 61),
        ]);
        let found = compare(&ratchet, &actual);
        for part in ["grew from 500", "write 65", "fn c g: fine", "fn d h: 61"] {
            assert!(
                found.iter().any(|line| line.contains(part)),
                "{part} in {found:?}"
            );
        }
        assert!(compare(&ratchet, &ratchet).is_empty());
        assert!(parse_ratchet("file a many").is_err());
    }
}
