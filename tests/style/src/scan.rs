//! Splits Rust source into what the compiler reads and what people read, line for line.

/// One source text, taken apart. Both parts have as many lines as the text; what belongs to the
/// other part is blank.
#[derive(Debug)]
pub struct Scanned {
    /// Code, with comments and the content of string and character literals blanked.
    pub code: String,
    /// Code as above, with items under `#[cfg(test)]` and `#[test]` blanked too.
    pub product: String,
    /// Comments, their slashes included.
    pub comments: String,
    /// Offset and text of each string literal that stands in `product`, quotes and prefix included.
    pub literals: Vec<(usize, String)>,
}

impl Scanned {
    /// Takes `text` apart.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut split = Split::new(text);
        split.run();
        let code = into_text(split.code);
        let product = without_tests(&code);
        let in_product = |(from, _): &(usize, usize)| product.as_bytes()[*from] != b' ';
        let spans = split.literals.into_iter().filter(in_product);
        let literals = spans.map(|(from, to)| {
            let is_bytes = text[..from].ends_with('b') && !text[..from - 1].ends_with(is_ident);
            let from = from - usize::from(is_bytes);
            (from, text[from..to].to_owned())
        });
        Self {
            literals: literals.collect(),
            comments: into_text(split.comments),
            product,
            code,
        }
    }
}

/// Offsets at which `word` stands alone in `text`: no identifier character on either side.
pub fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |&at| {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_ident) && !after.is_some_and(is_ident)
        })
}

/// Whether `word` stands alone anywhere in `text`.
#[must_use]
pub fn has_word(text: &str, word: &str) -> bool {
    words(text, word).next().is_some()
}

/// Line number, from 1, of a byte offset.
#[must_use]
pub fn line_of(text: &str, offset: usize) -> usize {
    text[..offset].matches('\n').count() + 1
}

/// Offset just after the bracket that closes the one at `open`, or the text's end.
#[must_use]
pub fn closing(text: &str, open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        depth += match byte {
            b'{' | b'(' | b'[' => 1,
            b'}' | b')' | b']' => -1,
            _ => 0,
        };
        if depth == 0 {
            return at + 1;
        }
    }
    text.len()
}

/// Offset of the `{` that opens an item's body, or of the `;` that ends an item without one,
/// looking from `from`.
#[must_use]
pub fn body(text: &str, from: usize) -> Option<usize> {
    let mut depth = 0_i32;
    for (at, byte) in text.bytes().enumerate().skip(from) {
        match byte {
            b'{' | b';' if depth == 0 => return Some(at),
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether a character can stand in an identifier.
#[must_use]
pub fn is_ident(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Blanks every item that only tests see.
fn without_tests(code: &str) -> String {
    let mut out = code.as_bytes().to_vec();
    let attributes = code.match_indices("#[").map(|(at, _)| at);
    for start in attributes {
        let end = closing(code, start + 1);
        if !is_test_attribute(&code[start..end]) {
            continue;
        }
        let stop = match body(code, end) {
            Some(at) if code.as_bytes()[at] == b'{' => closing(code, at),
            Some(at) => at + 1,
            None => code.len(),
        };
        blank(&mut out[start..stop]);
    }
    into_text(out)
}

fn is_test_attribute(attribute: &str) -> bool {
    let is_cfg = attribute.starts_with("#[cfg(") && has_word(attribute, "test");
    attribute == "#[test]" || (is_cfg && !attribute.contains("not(test"))
}

fn blank(bytes: &mut [u8]) {
    for byte in bytes.iter_mut().filter(|byte| **byte != b'\n') {
        *byte = b' ';
    }
}

struct Split<'a> {
    text: &'a [u8],
    at: usize,
    code: Vec<u8>,
    comments: Vec<u8>,
    literals: Vec<(usize, usize)>,
}

impl<'a> Split<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.as_bytes();
        let mut empty = text.to_vec();
        blank(&mut empty);
        Self {
            text,
            at: 0,
            code: empty.clone(),
            comments: empty,
            literals: Vec::new(),
        }
    }

    fn run(&mut self) {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            if rest.starts_with(b"//") {
                self.comment(line_comment(rest));
            } else if rest.starts_with(b"/*") {
                self.comment(block_comment(rest));
            } else if let Some(length) = self.raw_string() {
                self.skip(length);
            } else if rest[0] == b'"' {
                self.skip(string(rest, b'"'));
            } else if is_char_literal(rest) {
                self.skip(string(rest, b'\''));
            } else {
                self.code[self.at] = rest[0];
                self.at += 1;
            }
        }
    }

    fn comment(&mut self, length: usize) {
        let range = self.at..self.at + length;
        self.comments[range.clone()].copy_from_slice(&self.text[range]);
        self.at += length;
    }

    /// Steps over a literal, keeping its first and last byte as code.
    fn skip(&mut self, length: usize) {
        self.literals.push((self.at, self.at + length));
        self.code[self.at] = self.text[self.at];
        self.at += length;
        self.code[self.at - 1] = self.text[self.at - 1];
    }

    /// Length of the raw string that starts here, `r` included.
    fn raw_string(&self) -> Option<usize> {
        let rest = &self.text[self.at..];
        let before = self.at.checked_sub(1).map(|at| self.text[at]);
        let inside_word = before.is_some_and(|b| b == b'_' || b.is_ascii_alphanumeric());
        let is_prefix = matches!(before, Some(b'b' | b'c'));
        if rest[0] != b'r' || (inside_word && !is_prefix) {
            return None;
        }
        let hashes = rest[1..].iter().take_while(|&&b| b == b'#').count();
        if rest.get(1 + hashes) != Some(&b'"') {
            return None;
        }
        let mut end = vec![b'"'];
        end.resize(1 + hashes, b'#');
        let start = 2 + hashes;
        let found = rest[start..]
            .windows(end.len())
            .position(|window| window == end);
        Some(found.map_or(rest.len(), |at| start + at + end.len()))
    }
}

fn line_comment(rest: &[u8]) -> usize {
    rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0);
    while at < rest.len() {
        let step = match &rest[at..] {
            [b'/', b'*', ..] => 1,
            [b'*', b'/', ..] => -1,
            _ => 0,
        };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
        if depth == 0 {
            break;
        }
    }
    at.min(rest.len())
}

/// Length of the quoted literal at the start of `rest`, both quotes included.
fn string(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

/// Whether a `'` starts a character and not a lifetime.
fn is_char_literal(rest: &[u8]) -> bool {
    if rest[0] != b'\'' {
        return false;
    }
    let Some(&first) = rest.get(1) else {
        return false;
    };
    let width = match first {
        b'\\' => return true,
        0..=0x7F => 1,
        0x80..=0xDF => 2,
        0xE0..=0xEF => 3,
        _ => 4,
    };
    rest.get(1 + width) == Some(&b'\'')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_literals_are_not_code() {
        let text =
            "let a = \"x // no\"; // yes {\nlet b = r#\"{\"{\"#; /* { /* { */ */ let c = '{';";
        let scanned = Scanned::new(text);
        assert!(!scanned.code.contains('{') && !scanned.code.contains("no"));
        assert!(scanned.code.contains("let c = '"));
        assert!(scanned.comments.contains("// yes {") && !scanned.comments.contains("no"));
        assert_eq!(scanned.code.lines().count(), 2);
    }

    #[test]
    fn literals_of_the_product_are_kept() {
        let text = "f(b\"ab\", \"c\", r#\"d\"#);\n#[test]\nfn t() { g(\"e\") }";
        let literals = Scanned::new(text).literals;
        let texts: Vec<_> = literals.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["b\"ab\"", "\"c\"", "r#\"d\"#"]);
        assert!(
            literals
                .iter()
                .all(|(at, literal)| text[*at..].starts_with(literal))
        );
    }

    #[test]
    fn lifetimes_and_characters_are_told_apart() {
        let scanned = Scanned::new("fn f<'a>(x: &'a str) { m('\\'', 'ä', 'b', b'\"'); unsafe_() }");
        assert!(scanned.code.contains("<'a>(x: &'a str)"));
        assert!(scanned.code.ends_with("unsafe_() }"));
        assert!(!has_word(&scanned.code, "unsafe"));
    }

    #[test]
    fn test_items_are_not_product() {
        let text = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { panic!(); } }\n#[cfg(not(test))]\nfn c() {}\n#[cfg(all(test, x))] use d;\nfn e() {}";
        let product = Scanned::new(text).product;
        assert!(!product.contains("panic") && !product.contains("use d"));
        assert!(product.contains("fn a") && product.contains("fn c") && product.contains("fn e"));
    }
}
