//! One owner for what two sides must agree on: magic numbers, words of a protocol and the places
//! of fields in bytes are spelled in one place, and the other side uses its names.

use super::scan::{Scanned, closing, has_word, line_of, words};
use super::sources::Source;

/// Owner, a path or the beginning of one, and the literals that are spelled only there: with
/// their quotes, `b"RMKB"`, a literal as a whole, without them a word in any literal.
pub type Owned<'o> = (&'o str, &'o [&'o str]);

/// A file that may spell a literal that it does not own, the literal, and why.
pub type Exception<'o> = (&'o str, &'o str, &'o str);

/// Literals outside their owner and outside tests, and exceptions that nothing needs.
#[must_use]
pub fn literals(
    sources: &[&Source],
    owned: &[Owned<'_>],
    exceptions: &[Exception<'_>],
) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        let scanned = Scanned::new(&source.text);
        let foreign = owned
            .iter()
            .filter(|(owner, _)| !source.path.starts_with(owner));
        for (owner, token) in foreign.flat_map(|(owner, all)| all.iter().map(move |t| (owner, t))) {
            let hits = scanned
                .literals
                .iter()
                .filter(|(_, text)| spells(text, token));
            for (at, _) in hits {
                let is_used = |(file, of, _): &&Exception<'_>| *file == source.path && of == token;
                if let Some(exception) = exceptions.iter().find(is_used) {
                    used.push(exception);
                    continue;
                }
                let line = line_of(&source.text, *at);
                findings.push(format!(
                    "{}:{line}: {token} is spelled in {owner} only: use its name",
                    source.path
                ));
            }
        }
    }
    let idle = exceptions
        .iter()
        .filter(|exception| !used.contains(exception));
    findings.extend(idle.map(|(file, token, _)| {
        format!("{file}: an exception for {token}, which it does not spell: take it off the list")
    }));
    findings
}

fn spells(literal: &str, token: &str) -> bool {
    match token.contains('"') {
        true => literal == token,
        // `{token}` is a variable in a format.
        false => words(literal, token).any(|at| !literal[..at].ends_with('{')),
    }
}

/// Places in bytes by number, `[4..8]` or `.get(24..)`, outside tests: a layout says them once.
/// `allowed` are files whose bytes are no format of ours, with the reason.
#[must_use]
pub fn offsets(sources: &[&Source], allowed: &[(&str, &str)]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        let code = Scanned::new(&source.text).product;
        let hits = code
            .match_indices("..")
            .filter(|(at, _)| is_offset(&code[..*at]));
        let mut lines: Vec<_> = hits.map(|(at, _)| line_of(&code, at)).collect();
        lines.dedup();
        if lines.is_empty() {
            continue;
        }
        if let Some((path, _)) = allowed.iter().find(|(path, _)| *path == source.path) {
            used.push(*path);
            continue;
        }
        findings.extend(lines.into_iter().map(|line| {
            format!(
                "{}:{line}: a place in bytes by its number: the layout's struct has a name for it",
                source.path
            )
        }));
    }
    let idle = allowed.iter().filter(|(path, _)| !used.contains(path));
    findings.extend(
        idle.map(|(path, _)| format!("{path}: has no place by number: take it off the list")),
    );
    findings
}

/// Whether a number of at least 2 after `[` or `.get(` ends here.
fn is_offset(before: &str) -> bool {
    let rest = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = before[rest.len()..].parse::<u64>();
    number.is_ok_and(|number| number >= 2) && (rest.ends_with(".get(") || is_index(rest))
}

/// Whether this ends in the bracket of an index, not of an array.
fn is_index(before: &str) -> bool {
    let Some(value) = before.strip_suffix('[') else {
        return false;
    };
    value.ends_with(|c: char| super::scan::is_ident(c) || c == ')' || c == ']')
}

/// Bytes in the order of this machine, outside tests: what two sides agree on is little-endian.
#[must_use]
pub fn native_order(sources: &[&Source]) -> Vec<String> {
    let uses = ["from_ne_bytes", "to_ne_bytes"];
    in_product(sources, |code| {
        let hits = uses.iter().flat_map(|name| words(code, name));
        hits.collect()
    })
    .map(|place| format!("{place}: bytes in the order of this machine: use those of `_le_`"))
    .collect()
}

/// Structs for bytes outside `owner`, and outside tests: a layout there is in no table. `allowed`
/// are files that need one all the same, with the reason.
#[must_use]
pub fn layouts(sources: &[&Source], owner: &str, allowed: &[(&str, &str)]) -> Vec<String> {
    let is_allowed = |path: &str| allowed.iter().any(|(file, _)| *file == path);
    let others = sources
        .iter()
        .filter(|s| !s.path.starts_with(owner) && !is_allowed(&s.path));
    let others: Vec<_> = others.copied().collect();
    in_product(&others, |code| {
        let calls = words(code, "layout").filter(|at| {
            let after = &code[at + "layout".len()..];
            let is_call = after.starts_with('!') && !after.starts_with("!=");
            is_call || code[..*at].trim_end().ends_with("macro_rules!")
        });
        let derives = code.match_indices("#[derive(").filter_map(|(at, _)| {
            let derive = &code[at..closing(code, at + 1)];
            let is_bytes = |name: &&str| has_word(derive, name);
            ["FromBytes", "IntoBytes"]
                .iter()
                .any(is_bytes)
                .then_some(at)
        });
        calls.chain(derives).collect()
    })
    .map(|place| format!("{place}: a struct for bytes: `layout!` in {owner} has a place for it"))
    .collect()
}

/// The lines that `find` names by offsets in the code, as `path:line`.
fn in_product<'s>(
    sources: &'s [&Source],
    find: impl Fn(&str) -> Vec<usize> + 's,
) -> impl Iterator<Item = String> + 's {
    sources.iter().flat_map(move |source| {
        let code = Scanned::new(&source.text).product;
        let mut lines: Vec<_> = find(&code).iter().map(|at| line_of(&code, *at)).collect();
        lines.sort_unstable();
        lines.dedup();
        let places = lines.into_iter();
        places.map(|line| format!("{}:{line}", source.path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNED: [Owned<'_>; 1] = [("format/src/", &["b\"RMKB\"", "lease_ms"])];

    fn found(path: &str, text: &str, exceptions: &[Exception<'_>]) -> Vec<String> {
        literals(&[&Source::new(path, text)], &OWNED, exceptions)
    }

    #[test]
    fn a_second_owner_is_found() {
        for text in [
            "const M: [u8; 4] = *b\"RMKB\";",
            "f(\"lease_ms\")",
            "format!(\"lease_ms={n}\")",
            "f(r#\"a lease_ms b\"#)",
        ] {
            assert_eq!(found("reader/src/a.rs", text, &[]).len(), 1, "{text}");
            assert!(found("format/src/a.rs", text, &[]).is_empty(), "{text}");
        }
    }

    #[test]
    fn names_comments_tests_and_other_words_are_fine() {
        let text = "// lease_ms, b\"RMKB\"\nlet lease_ms = \"release_ms, RMKB, {lease_ms}\";\n#[cfg(test)]\nmod tests { const A: &str = \"lease_ms\"; }";
        assert!(found("reader/src/a.rs", text, &[]).is_empty());
    }

    #[test]
    fn an_exception_is_for_one_file_and_must_be_needed() {
        let exception = [("reader/src/a.rs", "lease_ms", "why")];
        assert!(found("reader/src/a.rs", "f(\"lease_ms\")", &exception).is_empty());
        assert_eq!(
            found("reader/src/b.rs", "f(\"lease_ms\")", &exception).len(),
            2
        );
    }

    #[test]
    fn bytes_in_the_order_of_the_machine_are_found() {
        let found = |text: &str| native_order(&[&Source::new("a/src/a.rs", text)]).len();
        assert_eq!(found("f(u64::from_ne_bytes(b));"), 1);
        assert_eq!(found("f(n.to_ne_bytes());\ng(n.to_ne_bytes());"), 2);
        for good in [
            "f(u64::from_le_bytes(b), n.to_be_bytes());",
            "// to_ne_bytes",
            "#[cfg(test)]\nmod tests { fn f() { 1_u8.to_ne_bytes(); } }",
        ] {
            assert_eq!(found(good), 0, "{good}");
        }
    }

    #[test]
    fn a_layout_outside_its_owner_is_found() {
        for bad in [
            "layout! { pub struct A: 8 { 0 a: u64, } }",
            "format::layout! {}",
            "macro_rules! layout { () => {} }",
            "#[derive(Clone, zerocopy::IntoBytes)]\n#[repr(C)]\nstruct A(u64);",
            "#[derive(\n    FromBytes,\n    Immutable,\n)]\nstruct A(u64);",
        ] {
            let found = |path| layouts(&[&Source::new(path, bad)], "format/src/", &[]).len();
            assert_eq!(
                (found("a/src/a.rs"), found("format/src/a.rs")),
                (1, 0),
                "{bad}"
            );
        }
        let good = "use zerocopy::FromBytes;\nmod layout;\nlet layout = Layout::new();";
        let good = Source::new("a/src/a.rs", good);
        assert!(layouts(&[&good], "format/src/", &[]).is_empty());
    }

    #[test]
    fn places_by_number_are_found() {
        let found = |text: &str| offsets(&[&Source::new("a/src/a.rs", text)], &[]).len();
        for bad in [
            "f(&bytes[4..8])",
            "b.get(48..)",
            "u32::from_le_bytes(x()[12..16])",
            "b[2..=3]",
        ] {
            assert_eq!(found(bad), 1, "{bad}");
        }
        for good in [
            "&b[1..]",
            "&b[..8]",
            "for i in 4..8 {}",
            "[4..8]",
            "b.get(n..)",
            "// b[4..8]",
        ] {
            assert_eq!(found(good), 0, "{good}");
        }
        let source = Source::new("a/src/a.rs", "&b[4..8]");
        assert!(offsets(&[&source], &[("a/src/a.rs", "text")]).is_empty());
        assert_eq!(offsets(&[], &[("a/src/a.rs", "text")]).len(), 1);
    }
}
