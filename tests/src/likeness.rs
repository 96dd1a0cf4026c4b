//! Whether a command printed what a document shows. Times, sizes, pids and addresses differ from
//! run to run, and the width of columns with them; all else is compared. `> 3 us` is a time too: whether
//! the end of a process was seen differs.

use std::collections::BTreeMap;

/// Units of times and of sizes.
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];
const SIZES: [&str; 4] = ["B", "KiB", "MiB", "GiB"];

/// A piece of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Token {
    Text(String),
    Time,
    Size,
    Clock,
    Pid,
    Address,
}

/// Numbers that a document says differ, with those of this run.
type Bound = BTreeMap<String, String>;

/// Whether the lines are alike. In `shown` a line `…` stands for any lines, and a `…` at the end of a
/// line for the rest of it.
#[must_use]
pub fn alike(shown: &[String], printed: &[String], differ: &[String]) -> bool {
    let bound = differ.iter().map(|number| (number.clone(), String::new()));
    lines_alike(shown, printed, bound.collect())
}

fn lines_alike(shown: &[String], printed: &[String], mut bound: Bound) -> bool {
    let Some((first, rest)) = shown.split_first() else {
        return printed.is_empty();
    };
    if first.trim() == "…" {
        return (0..=printed.len()).any(|at| lines_alike(rest, &printed[at..], bound.clone()));
    }
    match printed.split_first() {
        Some((line, after)) => {
            line_alike(first, line, &mut bound) && lines_alike(rest, after, bound)
        }
        None => false,
    }
}

fn line_alike(shown: &str, printed: &str, bound: &mut Bound) -> bool {
    let (mut shown, mut printed) = (tokens(shown), tokens(printed));
    if shown.last() == Some(&Token::Text("…".to_owned())) {
        shown.pop();
        printed.truncate(shown.len());
    }
    let pairs = shown.iter().zip(&printed);
    shown.len() == printed.len() && pairs.into_iter().all(|(a, b)| token_alike(a, b, bound))
}

fn token_alike(shown: &Token, printed: &Token, bound: &mut Bound) -> bool {
    let (Token::Text(name), Token::Text(value)) = (shown, printed) else {
        return shown == printed;
    };
    match bound.get_mut(name) {
        Some(known) if known.is_empty() && starts_with_digit(value) => {
            known.clone_from(value);
            true
        }
        Some(known) => known == value,
        None => name == value,
    }
}

fn starts_with_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// The end of the piece of `text` whose characters are all so.
fn length(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn tokens(line: &str) -> Vec<Token> {
    let mut found = Vec::new();
    let mut rest = without_mark(line.trim());
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (token, end) = if let Some(end) = least_time(rest) {
            (Token::Time, end)
        } else if first.is_ascii_digit() {
            number(rest, found.last())
        } else if is_word(first) {
            let end = length(rest, is_word);
            (Token::Text(rest[..end].to_owned()), end)
        } else {
            let end = first.len_utf8();
            (Token::Text(rest[..end].to_owned()), end)
        };
        found.push(token);
        rest = rest[end..].trim_start();
    }
    found
}

/// The end of a time of which only the least is known, `> 3 us`, at the beginning of `text`.
fn least_time(text: &str) -> Option<usize> {
    let after = text.strip_prefix("> ")?;
    let (token, end) = after
        .starts_with(|c: char| c.is_ascii_digit())
        .then(|| number(after, None))?;
    (token == Token::Time).then_some(text.len() - after.len() + end)
}

/// A line of a graph without the mark of a long time: how long it is differs from run to run.
fn without_mark(line: &str) -> &str {
    let after = line.strip_prefix(['+', '!', '#', '*', '@', '$']);
    let after = after.map_or(line, str::trim_start);
    match starts_with_digit(after) && after.contains(" | ") {
        true => after,
        false => line,
    }
}

/// The token of a number at the beginning of `text`, with its unit, and where it ends.
fn number(text: &str, before: Option<&Token>) -> (Token, usize) {
    if let Some(digits) = text.strip_prefix("0x") {
        let end = 2 + length(digits, |c| c.is_ascii_hexdigit());
        return (Token::Address, end);
    }
    if let Some(end) = clock(text) {
        return (Token::Clock, end);
    }
    let end = length(text, |c| c.is_ascii_digit() || c == ',' || c == '.');
    let end = text[..end].trim_end_matches([',', '.']).len();
    let after = text[end..].strip_prefix(' ').unwrap_or(&text[end..]);
    let unit = &after[..length(after, |c| c.is_ascii_alphabetic())];
    let with_unit = text.len() - after.len() + unit.len();
    let is = |word: &str| before == Some(&Token::Text(word.to_owned()));
    let in_brackets = (is("[") || is("(")) && end >= 3 && text[end..].starts_with([']', ')']);
    match () {
        () if TIMES.contains(&unit) => (Token::Time, with_unit),
        () if SIZES.contains(&unit) => (Token::Size, with_unit),
        () if is("pid") || is("thread") || in_brackets => (Token::Pid, end),
        () => (Token::Text(text[..end].to_owned()), end),
    }
}

/// The end of a date, of a time of day, or of both, at the beginning of `text`.
fn clock(text: &str) -> Option<usize> {
    let end = length(text, |c| c.is_ascii_digit() || "-:.TZ".contains(c));
    let end = text[..end].trim_end_matches([':', '.', '-']).len();
    let piece = &text[..end];
    let is_date = piece.len() >= 10 && piece.as_bytes()[4] == b'-' && piece.as_bytes()[7] == b'-';
    let is_time = piece.len() >= 8 && piece.as_bytes()[2] == b':' && piece.as_bytes()[5] == b':';
    (is_date || is_time).then_some(end)
}

/// `shown` with one word altered, for each word that is compared: none of them may be alike.
#[must_use]
pub fn altered(shown: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (number, line) in shown.iter().enumerate() {
        let is_letter = |c: char| c.is_alphabetic();
        let starts = line.char_indices().filter(|(at, c)| {
            is_letter(*c) && !line[..*at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
        });
        for (at, _) in starts {
            let mut with = shown.to_vec();
            with[number] = format!("{}x{}", &line[..at], &line[at..]);
            found.push(with);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    fn is_alike(shown: &str, printed: &str) -> bool {
        alike(&lines(shown), &lines(printed), &["10,083".to_owned()])
    }

    #[test]
    fn times_sizes_pids_and_addresses_may_differ() {
        for (shown, printed) in [
            ("3 events in 369 us", "3 events in 1.25 ms"),
            ("4 KiB took=12ns", "1,024 B   took=7us"),
            ("pid 812: a[812] (8123)", "pid 4: a[77777] (999)"),
            (
                "2026-01-02T03:04:05.678Z at 0x12",
                "2025-11-12T13:14:15.1Z at 0xffe",
            ),
            ("09:10:11.123 x", "19:10:11.9 x"),
            ("open 0 ns x", "open > 3 us x"),
            ("   0.271 us |   }", "#  3.1 ms | }"),
            ("a\n…\nz", "a\nb\nc\nz"),
            ("own 10,083\nread 10,083", "own 7\nread 7"),
            ("right: none; …", "right: none; 0 were"),
        ] {
            assert!(is_alike(shown, printed), "{shown} / {printed}");
        }
    }

    #[test]
    fn all_else_may_not() {
        for (shown, printed) in [
            ("3 events in 369 us", "4 events in 369 us"),
            ("0 lost", "0 missing"),
            ("4 KiB", "4 us"),
            ("open 3 x", "open > 3 x"),
            ("  0.271 us | a();", "# 3.1 ms | b();"),
            ("4 | a();", "# 4 a();"),
            ("a\n…\nz", "a\nb"),
            ("a", "a\nb"),
            ("", "b"),
            ("own 10,083\nread 10,083", "own 7\nread 8"),
            ("own 10,083", "own x"),
            ("right: none; …", "right: some; 0 were"),
            ("right: none; …", "right"),
            ("exit status 101", "exit status 102"),
        ] {
            assert!(!is_alike(shown, printed), "{shown} / {printed}");
        }
    }

    #[test]
    fn each_altered_word_is_found() {
        let shown =
            lines("ringmark: 3 events in 369 us at 2026-01-02T03:04:05Z\n…\nrow a-b 1 lost");
        let altered = altered(&shown);
        assert_eq!(altered.len(), 9);
        for with in altered {
            assert!(!alike(&with, &shown, &[]), "{with:?}");
        }
    }
}
