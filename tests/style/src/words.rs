//! Words that must not stand in the product: other names for what has a name, paths of one
//! machine, unfinished work.

use super::scan::{Scanned, line_of, words};
use super::sources::Source;

/// Other names for things of the glossary, as identifiers. Rust standard names such as
/// `chunks_exact` are left alone.
const IDENTIFIERS: [(&str, &str); 13] = [
    ("subbuffer", "page"),
    ("sub_buffer", "page"),
    ("SubBuffer", "page"),
    ("chunk_size", "page_bytes"),
    ("chunk_bytes", "page_bytes"),
    ("ring_buffer", "ring"),
    ("dropped_events", "lost"),
    ("events_dropped", "lost"),
    ("missed_events", "lost"),
    ("events_missed", "lost"),
    ("head_position", "produced"),
    ("tail_position", "consumed"),
    ("flight_recorder", "overwrite mode"),
];

/// Anywhere in a file, put together here so that this file does not hold them.
const ANYWHERE: [(&str, &str); 6] = [
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/tmp/", "target"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("to", "do!("), "unfinished work"),
    (concat!("unimple", "mented!("), "unfinished work"),
    (concat!("FIX", "ME"), "unfinished work"),
];

/// Every such word with its place.
#[must_use]
pub fn check(source: &Source) -> Vec<String> {
    let anywhere = ANYWHERE.iter().flat_map(|&(word, reason)| {
        // Behind a placeholder it is a piece of another path, such as that of a process's root.
        let hits = source.text.match_indices(word);
        let hits = hits.filter(|(at, _)| !source.text[..*at].ends_with('}'));
        hits.map(move |(at, _)| finding(source, &source.text, at, &format!("`{word}`: {reason}")))
    });
    let mut findings: Vec<_> = anywhere.collect();
    if source.is_rust() {
        findings.extend(identifiers(source));
    }
    findings
}

fn identifiers(source: &Source) -> Vec<String> {
    let code = Scanned::new(&source.text).code;
    let mut findings = Vec::new();
    for (word, ours) in IDENTIFIERS {
        let hits = words(&code, word);
        findings
            .extend(hits.map(|at| finding(source, &code, at, &format!("`{word}`: we say {ours}"))));
    }
    findings
}

fn finding(source: &Source, text: &str, at: usize, what: &str) -> String {
    format!("{}:{}: {what}", source.path, line_of(text, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_are_found_in_code_only() {
        let bad = Source::new(
            "a.rs",
            "// a ring_buffer, as others say\nlet chunk_size = 4;",
        );
        assert_eq!(check(&bad), ["a.rs:2: `chunk_size`: we say page_bytes"]);
        let fine = Source::new("a.rs", "for c in x.chunks_exact(4) { my_chunk_size_of(c) }");
        assert!(check(&fine).is_empty());
    }

    #[test]
    fn machine_paths_and_unfinished_work_are_found_anywhere() {
        for (word, _) in ANYWHERE {
            let doc = Source::new("a.md", &format!("line\nsee {word}x)"));
            assert_eq!(check(&doc).len(), 1, "{word}");
        }
        assert!(check(&Source::new("a.md", "our work / target, rooted")).is_empty());
    }
}
