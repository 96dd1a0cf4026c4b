//! Sentences that are too long to be read once, in documents for users.

use super::sources::Source;

/// The most words of a sentence. A piece of code is one word, and so is the target of a link.
pub const WORDS_MAX: usize = 25;

/// Before an example inside of a help text.
const EXAMPLE: &str = "      ";

/// Every sentence with more words, by the line where its paragraph begins.
#[must_use]
pub fn check(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, text) in paragraphs(&source.text) {
        let long = sentences(&text).filter(|sentence| words(sentence) > WORDS_MAX);
        findings.extend(long.map(|sentence| {
            let found = words(sentence);
            let start: String = sentence.chars().take(60).collect();
            let path = &source.path;
            format!("{path}:{line}: {found} words, at most {WORDS_MAX}: {start}…")
        }));
    }
    findings
}

/// Paragraphs, items of lists and cells of tables, each with the line where it begins. Blocks of
/// code and comments are left out.
fn paragraphs(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut skipped_until: Option<&str> = None;
    let mut goes_on = false;
    for (line, number) in text.lines().zip(1..) {
        let plain = line.trim();
        if let Some(end) = skipped_until {
            skipped_until = (!plain.ends_with(end)).then_some(end);
            goes_on = false;
        } else if let Some(end) = skipped(plain) {
            skipped_until = (plain == "```" || !plain.ends_with(end)).then_some(end);
            goes_on = false;
        } else if line.starts_with(EXAMPLE) {
            goes_on = false;
        } else if is_columns(line) {
            found.push((number, plain.to_owned()));
            goes_on = false;
        } else if plain.starts_with('|') {
            found.extend(
                plain
                    .split('|')
                    .map(|cell| (number, cell.trim().to_owned())),
            );
            goes_on = false;
        } else if goes_on && !plain.is_empty() && !starts(plain) {
            let (_, last) = found.last_mut().expect("the paragraph that goes on");
            last.push(' ');
            last.push_str(plain);
        } else {
            found.push((number, plain.to_owned()));
            goes_on = !plain.is_empty() && !plain.starts_with('#');
        }
    }
    found
}

/// Whether a line of a help text has columns: each says something for itself.
fn is_columns(line: &str) -> bool {
    line.starts_with("    ") && line.trim().contains("  ")
}

/// The end of what a line begins that is no prose.
fn skipped(line: &str) -> Option<&'static str> {
    let ends = [("```", "```"), ("<!--", "-->"), ("<pre", "</pre>")];
    let begun = ends.iter().find(|(begin, _)| line.starts_with(begin));
    begun.map(|(_, end)| *end)
}

/// Whether a line begins an item of a list or a heading.
fn starts(line: &str) -> bool {
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ")
        || line.starts_with('#')
        || (number.len() < line.len() && number.starts_with(". "))
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .match_indices(['.', '?', '!', ':'])
            .map(|(at, mark)| at + mark.len());
        let mut end = end.filter(|&at| rest[at..].starts_with([' ', '*', ')']));
        let end = end.next().unwrap_or(rest.len());
        let (sentence, after) = rest.split_at(end);
        rest = after;
        (!sentence.is_empty()).then_some(sentence)
    })
}

fn words(sentence: &str) -> usize {
    let mut plain = String::new();
    for (piece, number) in sentence.split('`').zip(0..) {
        plain.push_str(if number % 2 == 0 { piece } else { "code" });
    }
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    plain.split_whitespace().filter(is_word).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        check(&Source::new("README.md", text))
    }

    #[test]
    fn a_long_sentence_is_found_wherever_it_is() {
        let long = "word ".repeat(WORDS_MAX + 1);
        let wrapped = long.replacen(' ', "\n", 3);
        for text in [
            long.clone(),
            format!("Text.\n\n{wrapped}."),
            format!("- Item. {long}.\n"),
            format!("| a | {long} |"),
            format!("# Title\n{long}"),
            format!("Short: {long}. Short."),
        ] {
            assert_eq!(found(&text).len(), 1, "{text}");
        }
        assert!(found(&format!("a\n\n{long}"))[0].starts_with("README.md:3: 26 words"));
    }

    #[test]
    fn short_sentences_code_and_comments_are_fine() {
        let short = "word ".repeat(WORDS_MAX - 1);
        let long = "word ".repeat(WORDS_MAX + 1);
        for text in [
            format!("{short}end. {short}end."),
            format!("- {short}\n- {short}\n2. {short}"),
            format!("```console\n$ {long}\n```\n{short}"),
            format!("<!-- before: {long} -->\n{short}"),
            format!("<!-- a\n{long} -->\n{short}"),
            format!("Run `{long}`."),
            format!("| {short} | {short} |"),
            format!("    Help.\n      {long}\n"),
            format!("    a  {short}\n    b  {short}\n"),
        ] {
            assert!(found(&text).is_empty(), "{:?}", found(&text));
        }
    }
}
