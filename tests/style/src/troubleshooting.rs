//! The messages that a page for users explains: each is one that the product prints.

use super::scan::Scanned;
use super::sources::Source;

/// In the cell of a message that another program prints.
const FOREIGN: &str = "(from ";

/// Messages of the page's tables (`| message |`) that no literal of the product has.
#[must_use]
pub fn check(page: &Source, product: &[&Source]) -> Vec<String> {
    let literals: Vec<String> = product.iter().flat_map(|source| literals(source)).collect();
    let mut findings = Vec::new();
    for (line, cell) in messages(&page.text) {
        let is_printed = |piece: &&str| literals.iter().any(|literal| literal.contains(*piece));
        let pieces = pieces(cell);
        if pieces.is_empty() {
            findings.push(format!("{}:{line}: no message: {cell}", page.path));
        }
        let unknown = pieces.iter().filter(|piece| !is_printed(piece));
        findings
            .extend(unknown.map(|piece| format!("{}:{line}: nothing prints `{piece}`", page.path)));
    }
    findings
}

/// First cells of the tables of messages, with their lines, without those of other programs.
fn messages(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_table = false;
    for (line, number) in text.lines().zip(1..) {
        let cell = line.split('|').nth(1).unwrap_or_default().trim();
        match cell {
            "message" => in_table = true,
            "" => in_table = false,
            _ if in_table && !cell.starts_with("--") && !cell.contains(FOREIGN) => {
                found.push((number, cell));
            }
            _ => {}
        }
    }
    found
}

/// What a message has between its values: `…`, and words in capital letters.
fn pieces(cell: &str) -> Vec<&str> {
    let message = cell.split('`').nth(1).unwrap_or_default();
    let mut pieces: Vec<&str> = Vec::new();
    for part in message.split('\u{2026}') {
        let mut begun = 0;
        for (at, word) in words(part) {
            if word.len() <= 4 && word.chars().all(|c| c.is_ascii_uppercase()) {
                pieces.push(&part[begun..at]);
                begun = at + word.len();
            }
        }
        pieces.push(&part[begun..]);
    }
    let pieces = pieces
        .into_iter()
        .map(|piece| piece.trim_matches([' ', ':', '-']));
    pieces.filter(|piece| piece.len() > 1).collect()
}

/// Words of a text, with their offsets.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_end = |c: char| !c.is_ascii_alphanumeric();
    let starts = text
        .char_indices()
        .filter(move |(at, c)| !is_end(*c) && text[..*at].chars().next_back().is_none_or(is_end));
    starts.map(move |(at, _)| {
        let end = text[at..].find(is_end).map_or(text.len(), |end| at + end);
        (at, &text[at..end])
    })
}

/// Literals of a source as they are printed: a line that goes on is one with the next.
fn literals(source: &Source) -> Vec<String> {
    let joined = |(_, literal): (usize, String)| {
        let mut lines = literal.split("\\\n");
        let first = lines.next().unwrap_or_default().to_owned();
        lines.fold(first, |text, line| text + line.trim_start())
    };
    let literals = Scanned::new(&source.text).literals;
    literals.into_iter().map(joined).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CODE: &str = "fn f() { fail!(\"no room in pid {pid}: \\\n    it is {state}\") }";

    fn found(message: &str) -> Vec<String> {
        let text = format!("| message | cause |\n| --- | --- |\n| {message} | none |\n");
        let code = Source::new("tools/src/a.rs", CODE);
        check(&Source::new("docs/src/a.md", &text), &[&code])
    }

    #[test]
    fn a_message_that_nothing_prints_is_found() {
        for message in [
            "`no rooms in pid N`",
            "`no room in pid N: it was`",
            "No message",
        ] {
            let found = found(message);
            assert_eq!(found.len(), 1, "{message}: {found:?}");
            assert!(found[0].starts_with("docs/src/a.md:3: "), "{found:?}");
        }
    }

    #[test]
    fn messages_that_are_printed_and_those_of_others_are_fine() {
        for message in [
            "`no room in pid N`",
            "`no room in pid N: it is \u{2026}`",
            "`room \u{2026} it is`",
            "`not ours` (from the linker)",
        ] {
            assert!(found(message).is_empty(), "{message}: {:?}", found(message));
        }
    }
}
