//! Code that runs inside the traced program never prints, panics, exits or aborts, and calls
//! nothing of the standard library that does.

use super::scan::{Scanned, line_of, words};
use super::sources::Source;

/// Identifier and what must follow it directly.
const TOKENS: [(&str, &str); 36] = [
    ("print", "!"),
    ("println", "!"),
    ("eprint", "!"),
    ("eprintln", "!"),
    ("dbg", "!"),
    ("panic", "!"),
    ("unreachable", "!"),
    ("unwrap", "()"),
    ("unwrap_err", "()"),
    ("expect", "("),
    ("expect_err", "("),
    ("abort", "("),
    ("resume_unwind", "("),
    ("process::exit", "("),
    ("todo", "!"),
    ("unimplemented", "!"),
    ("handle_alloc_error", "("),
    // What the standard library does by a panic, or prints, where the system says no.
    ("HashMap", "::"),
    ("HashSet", "::"),
    ("RandomState", "::"),
    ("SystemTime", "::"),
    ("Instant", "::"),
    ("elapsed", "()"),
    ("read_dir", "("),
    ("borrow", "()"),
    ("borrow_mut", "()"),
    ("thread::spawn", "("),
    ("thread::sleep", "("),
    ("env::args", "("),
    ("env::vars", "("),
    // What a forked child may find taken for ever, by a thread that it does not have.
    ("Once", "::"),
    ("OnceLock", "::"),
    ("LazyLock", "::"),
    ("Mutex", "::"),
    ("RwLock", "::"),
    ("Condvar", "::"),
];

/// Every such call outside tests, unless `allowed` lists it as (path, token).
#[must_use]
pub fn check(source: &Source, allowed: &[(&str, &str)]) -> Vec<String> {
    let code = Scanned::new(&source.text).product;
    let mut findings = Vec::new();
    for (word, behind) in TOKENS {
        if allowed.contains(&(source.path.as_str(), word)) {
            continue;
        }
        let calls = words(&code, word).filter(|&at| code[at + word.len()..].starts_with(behind));
        let calls = calls.filter(|&at| !is_attribute(&code, at));
        findings.extend(calls.map(|at| {
            let line = line_of(&code, at);
            format!("{}:{line}: `{word}{behind}` in code of the traced program: count it, or return an error", source.path)
        }));
    }
    findings
}

/// `#[expect(lint)]` is an attribute and no call.
fn is_attribute(code: &str, at: usize) -> bool {
    code[..at].ends_with("#[") || code[..at].ends_with("#![")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_is_found() {
        for (word, behind) in TOKENS {
            let text = format!("fn f() {{\n    {word}{behind};\n}}\n");
            let found = check(&Source::new("ring/src/a.rs", &text), &[]);
            assert_eq!(found.len(), 1, "{word}: {found:?}");
            assert!(found[0].starts_with("ring/src/a.rs:2:"));
        }
    }

    #[test]
    fn tests_attributes_and_kin_are_fine() {
        let text = "#[expect(dead_code)]\nfn f() { a.unwrap_or(1); }\n#[cfg(test)]\nmod tests { fn g() { a.unwrap(); } }";
        assert!(check(&Source::new("ring/src/a.rs", text), &[]).is_empty());
    }

    #[test]
    fn an_exception_is_for_one_file_and_token() {
        let source = Source::new("ring/src/a.rs", "fn f() { abort(); panic!() }");
        assert_eq!(check(&source, &[("ring/src/a.rs", "abort")]).len(), 1);
    }
}
