//! Text in the columns of a terminal: how wide it is, cut to a width, wrapped to a width.

use std::ops::Range;

use unicode_width::UnicodeWidthChar;

/// Characters that a cut name keeps at least.
pub const SHORTEST_NAME: usize = 10;

/// The characters of a text, each with the columns that a terminal gives it at most. Escape
/// sequences of colours take none.
fn cells(text: &str) -> impl Iterator<Item = (char, usize)> {
    let mut in_escape = false;
    text.chars().map(move |c| {
        in_escape |= c == '\x1b';
        let columns = match c {
            _ if in_escape => 0,
            // Terminals that know it make the character before it two columns wide.
            '\u{FE0F}' => 1,
            c => c.width().unwrap_or(0),
        };
        in_escape &= c != 'm';
        (c, columns)
    })
}

/// Number of columns that a terminal gives a text at most.
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return text.len();
    }
    cells(text).map(|(_, columns)| columns).sum()
}

/// Bytes of the longest beginning of a text within `room` columns, and how many it takes.
fn beginning(text: &str, room: usize) -> (usize, usize) {
    let (mut bytes, mut used) = (0, 0);
    for (c, columns) in cells(text) {
        if used + columns > room {
            break;
        }
        used += columns;
        bytes += c.len_utf8();
    }
    (bytes, used)
}

/// Cuts the end off a text that is wider than `room`.
pub fn cut(text: &mut String, room: usize) {
    // A character has at least as many bytes as columns.
    if text.len() > room && beginning(text, room).0 < text.len() {
        text.truncate(beginning(text, room.saturating_sub(1)).0);
        text.push('…');
    }
}

/// Cuts the middle out of a text that is wider than `room`.
pub fn shorten(text: &mut String, room: usize) {
    if text.len() <= room || beginning(text, room).0 == text.len() {
        return;
    }
    let room = room.saturating_sub(1);
    let (front, used) = beginning(text, room / 2);
    let (mut left, mut from) = (room - used, text.len());
    let ends: Vec<_> = cells(text).collect();
    for (c, columns) in ends.into_iter().rev() {
        if columns > left {
            break;
        }
        left -= columns;
        from -= c.len_utf8();
    }
    // A mark belongs to the character before it, which is cut out.
    let marks = cells(&text[from..]).take_while(|(_, columns)| *columns == 0);
    let back = from + marks.map(|(c, _)| c.len_utf8()).sum::<usize>();
    *text = format!("{}…{}", &text[..front], &text[back..]);
}

/// Shortens a name that is wider than `room`: that of a function of C++ by the types of its arguments, then
/// by what its templates are made of, and only then in the middle.
pub fn shorten_name(name: &mut String, room: usize) {
    if width(name) > room
        && let Some(types) = argument_types(name)
    {
        name.replace_range(types, "…");
    }
    if width(name) > room {
        // From the last one on, so that the places of the others stay.
        for parameters in template_parameters(name).into_iter().rev() {
            name.replace_range(parameters, "…");
        }
    }
    shorten(name, room);
}

/// Where the parameters of templates stand in a name, without those inside others: between `<` after a name
/// and its `>`. Signs of operators are none.
fn template_parameters(name: &str) -> Vec<Range<usize>> {
    let (mut found, mut depth, mut open, mut before) = (Vec::new(), 0_usize, 0, ' ');
    for (at, c) in name.char_indices() {
        let is_of_name = |c: char| c.is_alphanumeric() || c == '_';
        match c {
            '<' if depth > 0 => depth += 1,
            '<' if is_of_name(before) && !name[..at].ends_with("operator") => {
                (depth, open) = (1, at + 1);
            }
            '>' if depth > 0 && before != '-' => {
                depth -= 1;
                if depth == 0 && open < at {
                    found.push(open..at);
                }
            }
            _ => {}
        }
        before = c;
    }
    found
}

/// Where the types of the arguments stand in the name of a C++ function: between the last parentheses,
/// which only qualifiers follow.
fn argument_types(name: &str) -> Option<Range<usize>> {
    let (mut end, mut depth) = (name, 0);
    if let Some((before, _)) = name.split_once(" [clone ") {
        end = before;
    }
    for qualifier in [" &&", " &", " volatile", " const"] {
        end = end.strip_suffix(qualifier).unwrap_or(end);
    }
    let end = end.strip_suffix(')')?;
    let closing = |c| match c {
        ')' => 1,
        '(' => -1,
        _ => 0,
    };
    let is_first = |(_, c): &(usize, char)| {
        depth += closing(*c);
        depth < 0
    };
    let (open, _) = end.char_indices().rev().find(is_first)?;
    let is_of_function = !end[..open].is_empty() && !end[..open].ends_with(' ');
    (is_of_function && open + 1 < end.len()).then_some(open + 1..end.len())
}

/// Adds spaces up to `room` columns.
pub fn pad(text: &mut String, room: usize) {
    let missing = room.saturating_sub(width(text));
    text.extend(std::iter::repeat_n(' ', missing));
}

/// A line in lines of at most `columns`, broken between words where that is possible; those after
/// the first are indented further.
pub fn wrap(line: &str, columns: usize) -> String {
    let indent = line.len() - line.trim_start_matches(' ').len();
    let hang = (indent + 2).min(columns / 2);
    let (mut out, mut rest, mut room) = (String::new(), line, columns);
    loop {
        let (end, _) = beginning(rest, room);
        if end == rest.len() {
            out.push_str(rest);
            return out;
        }
        let at_space = match rest[end..].starts_with(' ') {
            true => Some(end),
            false => rest[..end].rfind(' '),
        };
        let at_word = at_space.filter(|at| !rest[..*at].trim().is_empty());
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let at = at_word.unwrap_or(end.max(first));
        out.push_str(rest[..at].trim_end());
        out.push('\n');
        out.extend(std::iter::repeat_n(' ', hang));
        rest = rest[at..].trim_start_matches(' ');
        room = columns - hang;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_as_terminals_do() {
        for (text, columns) in [
            ("abc", 3),
            ("要求", 4),
            ("e\u{301}", 1),
            ("🚀", 2),
            ("❤\u{FE0F}", 2),
            ("\x1b[31mred\x1b[0m", 3),
            ("", 0),
        ] {
            assert_eq!(width(text), columns, "{text:?}");
        }
    }

    #[test]
    fn what_is_too_wide_is_cut() {
        let cut_to = |text: &str, room| {
            let mut text = text.to_owned();
            cut(&mut text, room);
            text
        };
        assert_eq!(cut_to("abcdef", 6), "abcdef");
        assert_eq!(cut_to("abcdef", 5), "abcd…");
        assert_eq!(cut_to("要求要求", 6), "要求…");
        let short = |text: &str, room| {
            let mut text = text.to_owned();
            shorten(&mut text, room);
            text
        };
        assert_eq!(short("abcdefgh", 5), "ab…gh");
        assert_eq!(short("要求要求", 6), "要…求");
        assert_eq!(short("aaae\u{301}b", 4), "a…e\u{301}b");
        assert_eq!(short("aaaae\u{301}", 3), "a…e\u{301}");
    }

    #[test]
    fn types_of_arguments_go_before_the_middle_of_a_name() {
        let short = |name: &str, room| {
            let mut name = name.to_owned();
            shorten_name(&mut name, room);
            name
        };
        let get = "shop::Cart::get(std::string const&, int) const";
        let call = "run(int)::{lambda(char)#1}::operator()(int (*)(char)) const";
        for (name, room, expected) in [
            (get, 46, get),
            (get, 45, "shop::Cart::get(…) const"),
            (get, 21, "shop::Cart…t(…) const"),
            (call, 50, "run(int)::{lambda(char)#1}::operator()(…) const"),
            ("f(int, int) [clone .cold]", 20, "f(…) [clone .cold]"),
            ("(anonymous namespace)::go", 12, "(anon…e)::go"),
            ("GET /orders (a slow one)", 14, "GET /o…ow one)"),
            ("a_long_name()", 9, "a_lo…me()"),
            (
                "void std::__introsort_loop<int*, long, less<int> >(int*, int*, long) [clone .isra.0]",
                60,
                "void std::__introsort_loop<…>(…) [clone .isra.0]",
            ),
            (
                "bool operator<<int>(A<int> const&)",
                22,
                "bool operator<<int>(…)",
            ),
            (
                "a::Vec<T>::of<U, V<W>>::push(int)",
                25,
                "a::Vec<…>::of<…>::push(…)",
            ),
            ("<A as B<Long>>::go_on", 18, "<A as B<…>>::go_on"),
        ] {
            let found = short(name, room);
            assert_eq!(found, expected);
            assert!(width(&found) <= room, "{found}");
        }
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrap("one two three", 20), "one two three");
        assert_eq!(wrap("one two three", 8), "one two\n  three");
        assert_eq!(wrap("a  abcdefghij", 6), "a\n  abcd\n  efgh\n  ij");
        assert_eq!(wrap("要求要求", 4), "要求\n  要\n  求");
        for columns in 1..30 {
            let text = wrap("  some words, 要求要求要求 and aVeryLongWord", columns);
            let widest = text.lines().map(width).max().unwrap();
            assert!(widest <= columns.max(2) || columns < 4, "{columns}: {text}");
        }
    }
}
