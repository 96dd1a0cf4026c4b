//! Phrases that hide a role or say nothing, in comments, in texts of the product and in
//! documents: each has a plain word instead.

use super::scan::{Scanned, line_of, words};
use super::sources::Source;

/// Phrase, put together here so that this file does not hold it, and what to say.
const PHRASES: [(&str, &str); 7] = [
    (concat!("so ", "many"), "the number, or what it counts"),
    (concat!("if not ", "said"), "by default"),
    (concat!("who", "ever"), "the role: peer, reader, owner"),
    (concat!("some", "body"), "the role: peer, reader, owner"),
    (
        concat!("no", "body"),
        "no and the role: no reader, no owner",
    ),
    (concat!("said ", "of"), "a verb"),
    (
        concat!("mean", "while"),
        "during, or what happens at that time",
    ),
];

/// Likewise in what users read, where these words stand for the verbs and prepositions of the trade.
const USER_PHRASES: [(&str, &str); 22] = [
    (concat!("be", "side"), "next to, with, during"),
    (concat!("be", "sides"), "also, in addition"),
    (concat!("behind", " the"), "after"),
    (concat!("behind", " a"), "after"),
    (concat!("sta", "nds"), "is, has"),
    (concat!("li", "es"), "is"),
    (concat!("to", "ld"), "reported, configured"),
    (concat!("as", "ked"), "requested"),
    (concat!("an", "ew"), "again"),
    (concat!("good", "-bye"), "ends"),
    (concat!("given ", "back"), "freed, returned"),
    (concat!("gives ", "back"), "frees, returns"),
    (concat!("is ", "said"), "is reported, is shown"),
    (concat!("sta", "nd"), "be, have"),
    (concat!("lie", ""), "be"),
    (concat!("te", "ll"), "report, configure"),
    (concat!("te", "lls"), "reports"),
    (concat!("b", "ar"), "target"),
    (concat!("wh", "om"), "the role: the peer, the reader"),
    (
        concat!("presum", "ably"),
        "what was measured, or that it was not",
    ),
    (concat!("for want", " of"), "because there is no"),
    (concat!("can be", " had"), "is available"),
];

/// A comment or document sentence that starts with this is turned round.
const START: &str = concat!("O", "f ");

/// Every such phrase of a source, with its place.
#[must_use]
pub fn check(source: &Source) -> Vec<String> {
    let text = match source.is_rust() {
        true => rust(source),
        false => source.text.clone(),
    };
    let plain = unwrapped(&text);
    let mut findings = hits(&plain, &PHRASES);
    let starts = words(&plain, START.trim_end()).filter(|&at| is_start(&plain, at));
    let starts = starts.map(|at| line_of(&plain, at));
    findings.extend(starts.map(|line| (line, format!("a sentence starts with `{START}`"))));
    placed(source, findings)
}

/// Every word of a text for users that has a plainer one: of a document, or in literals.
#[must_use]
pub fn check_user(source: &Source) -> Vec<String> {
    let text = match source.is_rust() {
        true => literals(&Scanned::new(&source.text), blank(&source.text)),
        false => source.text.clone(),
    };
    placed(source, hits(&unwrapped(&text), &USER_PHRASES))
}

/// Line and finding for each of the phrases.
fn hits(plain: &str, phrases: &[(&str, &str)]) -> Vec<(usize, String)> {
    // Offsets stay the same: a phrase may be wrapped.
    let flat = plain.to_ascii_lowercase().replace('\n', " ");
    let mut findings = Vec::new();
    for (phrase, instead) in phrases {
        let hits = words(&flat, phrase).map(|at| line_of(plain, at));
        findings.extend(hits.map(|line| (line, format!("`{phrase}`: say {instead}"))));
    }
    findings
}

fn placed(source: &Source, mut findings: Vec<(usize, String)>) -> Vec<String> {
    findings.sort();
    let findings = findings.into_iter();
    findings
        .map(|(line, what)| format!("{}:{line}: {what}", source.path))
        .collect()
}

/// Comments, and literals outside tests, line for line.
fn rust(source: &Source) -> String {
    let scanned = Scanned::new(&source.text);
    let comments = scanned.comments.clone();
    match source.is_test() {
        true => comments,
        false => literals(&scanned, comments),
    }
}

/// `text` with the literals of `scanned` at their places.
fn literals(scanned: &Scanned, text: String) -> String {
    let mut text = text.into_bytes();
    for (at, literal) in &scanned.literals {
        text[*at..at + literal.len()].copy_from_slice(literal.as_bytes());
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Spaces for each byte but the ends of lines.
fn blank(text: &str) -> String {
    let blank = |byte| if byte == b'\n' { '\n' } else { ' ' };
    text.bytes().map(blank).collect()
}

/// The text without indentation and the marks of comments, line for line.
fn unwrapped(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let line = line.trim_start();
        let inner = line.trim_start_matches(['/', '!', '*', '#', '>', '|']);
        inner.trim().trim_end_matches('\\').trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn is_start(text: &str, at: usize) -> bool {
    let before = text[..at].trim_end();
    let is_line = text[..at].ends_with('\n') || at == 0;
    (is_line || before.ends_with(['.', ':', '"', '|'])) && text[at..].starts_with(START)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_phrase_is_found_in_comments_texts_and_documents() {
        for (phrase, _) in PHRASES {
            let (first, last) = phrase.split_once(' ').unwrap_or(("", phrase));
            let doc = format!("/// Here {phrase} stand.\nfn f() {{}}");
            let wrapped = format!("//! A line {first}\n//! {last} for two.");
            let text = format!("fn f() {{ eprintln!(\"there is {phrase} left\") }}");
            for code in [doc, wrapped, text] {
                let found = check(&Source::new("ring/src/a.rs", &code));
                assert_eq!(found.len(), 1, "{code}: {found:?}");
            }
            let document = Source::new("README.md", &format!("Text.\nThere is {phrase}."));
            assert!(check(&document)[0].starts_with("README.md:2:"));
        }
    }

    #[test]
    fn each_word_for_users_is_found_in_documents_and_texts() {
        for (phrase, _) in USER_PHRASES {
            let document = Source::new("docs/src/a.md", &format!("Text.\nIt is {phrase} it."));
            let found = check_user(&document);
            assert!(found[0].starts_with("docs/src/a.md:2:"), "{found:?}");
            let text = format!("// {phrase}\nfn f() {{ eprintln!(\"a file {phrase} one\") }}");
            let found = check_user(&Source::new("tools/src/a.rs", &text));
            assert!(found.len() == 1 && found[0].contains(":2:"), "{found:?}");
        }
    }

    #[test]
    fn a_sentence_that_starts_so_is_found() {
        for bad in ["/// Of an event.\n", "// It is. Of these two.\n"] {
            let found = check(&Source::new("ring/src/a.rs", bad));
            assert_eq!(found.len(), 1, "{bad}: {found:?}");
        }
    }

    #[test]
    fn names_other_words_and_texts_of_tests_are_fine() {
        let text = format!("/// Part of it.\nfn {}() {{}}\n", PHRASES[2].0);
        assert!(check(&Source::new("ring/src/a.rs", &text)).is_empty());
        let text = format!("assert!(a, \"{}\");", PHRASES[4].0);
        assert!(check(&Source::new("ring/tests/a.rs", &text)).is_empty());
    }
}
