//! Lengths of files and functions, tests and benchmarks included.

use super::scan::{Scanned, body, closing, line_of, words};
use super::sources::Source;

/// Most lines of a file.
pub const FILE_LINES_MAX: usize = 450;
/// Most lines of a function, from `fn` to its closing brace.
pub const FUNCTION_LINES_MAX: usize = 60;

/// Everything that is longer than allowed.
#[must_use]
pub fn check(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        findings.push(format!(
            "{}: {lines} lines, at most {FILE_LINES_MAX}: split it",
            source.path
        ));
    }
    let code = Scanned::new(&source.text).code;
    let long = functions(&code).filter(|(_, lines)| *lines > FUNCTION_LINES_MAX);
    findings.extend(long.map(|(name, lines)| {
        format!(
            "{}: fn {name}: {lines} lines, at most {FUNCTION_LINES_MAX}: split it",
            source.path
        )
    }));
    findings
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
        assert!(check(&Source::new("a/src/a.rs", &function(60))).is_empty());
        for path in ["a/src/a.rs", "a/tests/a.rs"] {
            let found = check(&Source::new(path, &function(61)));
            assert!(found[0].contains("fn long: 61 lines"), "{found:?}");
        }
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", function(61));
        assert_eq!(check(&Source::new("a/src/a.rs", &test)).len(), 1);
    }

    #[test]
    fn a_long_file_is_found() {
        let text = "const A: u8 = 0;\n".repeat(451);
        assert_eq!(check(&Source::new("a/tests/a.rs", &text)).len(), 1);
        let text = "const A: u8 = 0;\n".repeat(450);
        assert!(check(&Source::new("a/tests/a.rs", &text)).is_empty());
    }
}
