//! Paths in Rust code: what a `use` names, and the paths that stand in the code itself.

use super::scan::{Scanned, closing, is_ident, words};

/// One name that a `use` brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Use {
    /// Offset of the statement.
    pub at: usize,
    /// Whether the name is exported further (`pub use`, `pub(crate) use`).
    pub is_export: bool,
    /// The path, without a closing `self`; the last segment may be `*`.
    pub path: Vec<String>,
    /// The name here: `as` is followed.
    pub name: String,
}

/// Every name that a `use` of `code` brings in, and the code without these statements.
#[must_use]
pub fn uses(code: &str) -> (Vec<Use>, String) {
    let mut found = Vec::new();
    let mut rest = code.as_bytes().to_vec();
    for at in words(code, "use") {
        let text = &code[at + 3..];
        // `use<'a>` of a return type is no statement.
        if !text.starts_with(char::is_whitespace) {
            continue;
        }
        let end = text.find(';').unwrap_or(text.len());
        let is_export = is_export(&code[..at]);
        tree(&text[..end], &[], &mut |path, name| {
            found.push(Use {
                at,
                is_export,
                path,
                name,
            });
        });
        for byte in &mut rest[at..at + 3 + end] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    }
    (found, String::from_utf8_lossy(&rest).into_owned())
}

fn is_export(before: &str) -> bool {
    let before = before.trim_end();
    let open = before.ends_with(')').then(|| before.rfind('(')).flatten();
    let word = open.map_or(before, |at| &before[..at]);
    word.ends_with("pub")
}

/// Takes one tree of a `use` apart.
fn tree(text: &str, prefix: &[String], found: &mut impl FnMut(Vec<String>, String)) {
    let text = text.trim();
    if let Some(open) = text.find('{') {
        let prefix = joined(prefix, &text[..open]);
        let inner = &text[open + 1..closing(text, open) - 1];
        for part in branches(inner) {
            tree(part, &prefix, found);
        }
        return;
    }
    let (path, alias) = match text.split_once(" as ") {
        Some((path, alias)) => (path, Some(alias.trim().to_owned())),
        None => (text, None),
    };
    let mut path = joined(prefix, path);
    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    if let Some(name) = alias.or_else(|| path.last().cloned()) {
        found(path, name);
    }
}

fn joined(prefix: &[String], path: &str) -> Vec<String> {
    let segments = path.split("::").map(str::trim);
    let segments = segments.filter(|segment| !segment.is_empty());
    prefix
        .iter()
        .cloned()
        .chain(segments.map(str::to_owned))
        .collect()
}

/// Parts between the commas that stand in no braces.
fn branches(text: &str) -> Vec<&str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts.retain(|part| !part.trim().is_empty());
    parts
}

/// Every path of at least two segments in code without `use`, with its offset. A visibility such
/// as `pub(in crate::a)` is none.
#[must_use]
pub fn inline(code: &str) -> Vec<(usize, Vec<&str>)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(ahead) = code[at..].find("::") {
        let middle = at + ahead;
        let start = code[..middle].rfind(|c| !is_ident(c));
        let start = start.map_or(0, |last| last + width_at(code, last));
        let mut segments = vec![&code[start..middle]];
        at = middle;
        while let Some(rest) = code[at..].strip_prefix("::") {
            let length = rest.find(|c| !is_ident(c)).unwrap_or(rest.len());
            if length == 0 {
                break;
            }
            segments.push(&rest[..length]);
            at += 2 + length;
        }
        at = at.max(middle + 2);
        if start < middle && segments.len() > 1 && !code[..start].ends_with("(in ") {
            found.push((start, segments));
        }
    }
    found
}

/// Modules with a `#[path]`: the name, and the path as written.
#[must_use]
pub fn moved(source: &Scanned) -> Vec<(String, String)> {
    let code = &source.product;
    let attributes = words(code, "path").filter(|at| code[..*at].ends_with("#["));
    let found = attributes.filter_map(|at| {
        let (_, literal) = source.literals.iter().find(|(from, _)| *from > at)?;
        let item = &code[closing(code, at - 1)..];
        let name = item[words(item, "mod").next()? + "mod".len()..].trim_start();
        let end = name.find(|c| !is_ident(c))?;
        let path = literal.trim_matches('"');
        Some((name[..end].to_owned(), path.to_owned()))
    });
    found.collect()
}

fn width_at(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(code: &str) -> Vec<String> {
        let (uses, _) = uses(code);
        let line = |u: Use| format!("{} {} {}", u.path.join("::"), u.name, u.is_export);
        uses.into_iter().map(line).collect()
    }

    #[test]
    fn trees_aliases_and_exports_are_taken_apart() {
        let code = "use crate::{a::{self, B as C}, d::*};\npub(crate) use super::e::F;\nfn f() -> impl X + use<'_> {}";
        let expected = [
            "crate::a a false",
            "crate::a::B C false",
            "crate::d::* * false",
            "super::e::F F true",
        ];
        assert_eq!(names(code), expected);
        let (_, rest) = uses(code);
        assert!(!rest.contains("crate::a") && rest.contains("use<'_>"));
    }

    #[test]
    fn paths_in_code_are_found() {
        let code =
            "pub(in crate::x) fn f(a: crate::b::C) { d::<E>(); $crate::g!(); Vec::<u8>::new() }";
        let paths: Vec<_> = inline(code).into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, [vec!["crate", "b", "C"], vec!["crate", "g"]]);
    }
}
