//! How much is explained: lines of documentation for each line of code. A single line on a
//! private item does not count, because it seldom says more than the name does.

use super::scan::Scanned;
use super::sources::Source;

/// Lines of documentation and of code.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Lines {
    /// Documentation, single lines on private items left out.
    pub docs: usize,
    /// Code, without blank lines, comments and what only tests see.
    pub code: usize,
}

impl Lines {
    /// Documentation for each line of code.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.docs as f64 / self.code.max(1) as f64
    }
}

/// The sum over the Rust files whose path starts with one of `prefixes`, tests left out.
#[must_use]
pub fn count(sources: &[Source], prefixes: &[&str]) -> Lines {
    let files = sources
        .iter()
        .filter(|source| source.is_rust() && source.is_below(prefixes) && !source.is_test());
    files
        .map(count_file)
        .fold(Lines::default(), |sum, file| Lines {
            docs: sum.docs + file.docs,
            code: sum.code + file.code,
        })
}

fn count_file(source: &Source) -> Lines {
    let scanned = Scanned::new(&source.text);
    let product: Vec<_> = scanned.product.lines().collect();
    let whole: Vec<_> = scanned.code.lines().collect();
    let mut lines = Lines {
        docs: 0,
        code: product
            .iter()
            .filter(|line| !line.trim().is_empty())
            .count(),
    };
    let mut around = Container::default();
    let mut block = 0;
    for (at, comment) in scanned.comments.lines().enumerate() {
        let comment = comment.trim();
        if comment.starts_with("//!") {
            lines.docs += 1;
        } else if comment.starts_with("///") {
            block += 1;
        }
        let code = product[at].trim();
        let is_test = code.is_empty() && !whole[at].trim().is_empty();
        if code.is_empty() && !is_test || code.starts_with("#[") {
            continue;
        }
        if block > 1 || (block == 1 && !is_test && around.shows(product[at])) {
            lines.docs += if is_test { 0 } else { block };
        }
        block = 0;
        around.enter(product[at]);
    }
    lines
}

/// The item whose members stand in the lines that are read.
#[derive(Default)]
struct Container {
    is_public: bool,
    has_own_visibility: bool,
    indent: usize,
}

impl Container {
    /// Looks at a line that may open an item with members.
    fn enter(&mut self, line: &str) {
        let text = line.trim_start();
        let indent = line.len() - text.len();
        let is_public = text.starts_with("pub ");
        let item = text.trim_start_matches("pub ");
        let is_layout = ["layout!", "numbered!"].iter().any(|m| text.starts_with(m));
        let by_owner = ["enum ", "trait ", "union "]
            .iter()
            .any(|word| item.starts_with(word));
        let has_own = ["struct ", "impl ", "impl<", "mod "]
            .iter()
            .any(|word| item.starts_with(word));
        if is_layout {
            (self.is_public, self.has_own_visibility, self.indent) = (true, false, indent);
        } else if by_owner {
            (self.is_public, self.has_own_visibility, self.indent) = (is_public, false, indent);
        } else if has_own && !(self.is_public && !self.has_own_visibility && indent > self.indent) {
            (self.is_public, self.has_own_visibility, self.indent) = (is_public, true, indent);
        }
    }

    /// Whether the item that this line starts is public.
    fn shows(&self, line: &str) -> bool {
        let text = line.trim_start();
        let is_member = line.len() - text.len() > self.indent;
        let by_owner = is_member && self.is_public && !self.has_own_visibility;
        text.starts_with("pub ") || text.starts_with("macro_rules!") || by_owner
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn docs(text: &str) -> usize {
        count(&[Source::new("ring/src/a.rs", text)], &["ring/src/"]).docs
    }

    #[test]
    fn single_lines_on_private_items_do_not_count() {
        assert_eq!(docs("//! Module.\n\n/// One line.\nfn f() {}\n"), 1);
        assert_eq!(docs("/// One line.\npub fn f() {}\n"), 1);
        assert_eq!(docs("/// One line.\npub(crate) fn f() {}\n"), 0);
        assert_eq!(docs("/// Two\n/// lines.\n#[inline]\nfn f() {}\n"), 2);
        assert_eq!(
            docs("pub struct S {\n    /// Field.\n    a: u8,\n    /// Field.\n    pub b: u8,\n}\n"),
            1
        );
    }

    #[test]
    fn members_of_public_enums_traits_and_layouts_are_public() {
        assert_eq!(
            docs("pub enum E {\n    /// A.\n    A,\n}\n/// F.\nfn f() {}\n"),
            1
        );
        assert_eq!(docs("enum E {\n    /// A.\n    A,\n}\n"), 0);
        assert_eq!(docs("pub trait T {\n    /// F.\n    fn f();\n}\n"), 1);
        assert_eq!(
            docs(
                "layout! {\n    /// S.\n    pub struct S: 8 {\n        /// A.\n        0 a: u64,\n    }\n}\n"
            ),
            2
        );
    }

    #[test]
    fn code_is_what_is_left_without_comments_and_tests() {
        let text = "// Why.\nfn f() {\n\n    g(); // So.\n}\n#[cfg(test)]\nmod tests {\n    /// Long\n    /// doc.\n    fn h() {}\n}\n";
        let lines = count(&[Source::new("ring/src/a.rs", text)], &["ring/src/"]);
        assert_eq!(lines, Lines { docs: 0, code: 3 });
        assert!((lines.ratio() - 0.0).abs() < f64::EPSILON);
    }
}
