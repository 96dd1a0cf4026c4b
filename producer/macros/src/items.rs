//! The items of a block as tokens: where each ends, and which are functions.

use proc_macro2::{Delimiter, Group, TokenTree};

use crate::function::{is, is_punct};

/// What an item is, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    /// `impl`, `trait`, `mod`: a block of items.
    Block,
    Other,
}

/// One item, with its attributes.
pub(crate) struct Item {
    pub(crate) kind: Kind,
    /// How many of the tokens are attributes: two for each.
    pub(crate) attributes: usize,
    pub(crate) tokens: Vec<TokenTree>,
}

impl Item {
    /// What stands in the brackets of each attribute.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (usize, Vec<TokenTree>)> {
        let brackets = (1..self.attributes).step_by(2);
        brackets.filter_map(|at| match &self.tokens[at] {
            TokenTree::Group(group) => Some((at, group.stream().into_iter().collect())),
            _ => None,
        })
    }

    /// The braces at its end.
    pub(crate) fn body(&self) -> Option<&Group> {
        match self.tokens.last() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => Some(group),
            _ => None,
        }
    }

    /// Whether a word stands in front of the keyword `fn`.
    pub(crate) fn is_marked(&self, word: &str) -> bool {
        let head = &self.tokens[self.attributes..];
        head.iter()
            .take_while(|token| !is(token, "fn"))
            .any(|token| is(token, word))
    }
}

/// Splits tokens into items.
pub(crate) fn items(tokens: impl IntoIterator<Item = TokenTree>) -> Vec<Item> {
    let mut rest: Vec<TokenTree> = tokens.into_iter().collect();
    let mut items = Vec::new();
    while !rest.is_empty() {
        let (kind, attributes, length) = first(&rest);
        let behind = rest.split_off(length);
        items.push(Item {
            kind,
            attributes,
            tokens: std::mem::replace(&mut rest, behind),
        });
    }
    items
}

/// Kind, tokens in attributes and length of the first item.
fn first(tokens: &[TokenTree]) -> (Kind, usize, usize) {
    let hash = |at: usize| tokens.get(at).is_some_and(|token| is_punct(token, '#'));
    if hash(0) && tokens.get(1).is_some_and(|token| is_punct(token, '!')) {
        return (Kind::Other, 0, tokens.len().min(3)); // an attribute of the block
    }
    let pairs = (0..).step_by(2).take_while(|at| hash(*at)).count();
    let attributes = (2 * pairs).min(tokens.len());
    let (kind, is_long) = kind(&tokens[attributes..]);
    let length = attributes + length(&tokens[attributes..], is_long);
    (kind, attributes, length)
}

/// What the first words say. The flag: only a semicolon ends it, for it may hold any expression.
fn kind(tokens: &[TokenTree]) -> (Kind, bool) {
    const IN_FRONT: [&str; 9] = [
        "pub", "crate", "default", "async", "unsafe", "safe", "extern", "const", "auto",
    ];
    let is_in_front = |token: &&TokenTree| match token {
        TokenTree::Ident(_) => IN_FRONT.iter().any(|word| is(token, word)),
        // `(crate)` after `pub`, or all of it as a macro passes it on.
        TokenTree::Group(group) => {
            matches!(group.delimiter(), Delimiter::Parenthesis | Delimiter::None)
        }
        TokenTree::Literal(_) => true,
        TokenTree::Punct(_) => false,
    };
    let front = tokens.iter().take_while(is_in_front).count();
    let Some(word) = tokens.get(front) else {
        return (Kind::Other, false);
    };
    let is_one_of = |words: &[&str]| words.iter().any(|name| is(word, name));
    if is_one_of(&["fn"]) {
        (Kind::Function, false)
    } else if is_one_of(&["impl", "trait", "mod"]) {
        (Kind::Block, false)
    } else {
        let is_constant = tokens[..front].iter().any(|token| is(token, "const"));
        let is_long = is_constant || is_one_of(&["static", "use", "type"]);
        (Kind::Other, is_long)
    }
}

/// Up to the semicolon or the braces that end an item; those of a constant in `<…>` do not.
fn length(tokens: &[TokenTree], is_long: bool) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate() {
        let arrow = at > 0 && is_punct(&tokens[at - 1], '-');
        match token {
            TokenTree::Punct(punct) if punct.as_char() == ';' => return at + 1,
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !arrow => {
                depth = depth.saturating_sub(1);
            }
            TokenTree::Group(group)
                if group.delimiter() == Delimiter::Brace && depth == 0 && !is_long =>
            {
                return at + 1;
            }
            _ => {}
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::{Kind, items};

    #[test]
    fn each_item_ends_where_it_ends() {
        use Kind::{Block, Function, Other};
        for (text, kind) in [
            ("#![allow(dead_code)]", Other),
            ("pub fn a() -> [u8; { 3 }] { if 1 < 2 { } }", Function),
            (
                "fn a<const N: usize>(f: fn() -> u8) -> X<{ N + 1 }> where X<{ N }>: Y { }",
                Function,
            ),
            (
                "#[inline] #[doc = \"x\"] pub(crate) const unsafe extern \"C\" fn a();",
                Function,
            ),
            ("const A: X = X { a: 1 < 2 };", Other),
            ("pub const _: () = { assert!(true); };", Other),
            ("static mut B: fn() = { fn c() {} c };", Other),
            ("use a::{b, c};", Other),
            ("pub struct D<const N: usize = { 3 }> { a: u8 }", Other),
            ("struct E(u8);", Other),
            ("enum F { A { b: u8 } }", Other),
            ("macro_rules! g { () => { fn h() {} } }", Other),
            ("thing!(fn h() {});", Other),
            (
                "unsafe impl<T: Fn() -> u8> I<{ 1 }> for T { fn a() {} }",
                Block,
            ),
            (
                "pub(in crate::x) trait J: K { type L; const M: u8 = { 1 }; fn n(); }",
                Block,
            ),
            ("extern \"C\" { fn o(); }", Other),
            ("extern crate p;", Other),
            ("mod q { fn r() {} }", Block),
            ("mod s;", Block),
            ("type T = [u8; { 3 }];", Other),
            ("union U { a: u8 }", Other),
        ] {
            let text = format!("{text} fn behind() {{}}");
            let tokens: proc_macro2::TokenStream = text.parse().unwrap();
            let found = items(tokens);
            assert_eq!(found.len(), 2, "{text}");
            assert_eq!((found[0].kind, found[1].kind), (kind, Function), "{text}");
        }
        assert!(items("#[a] #[b]".parse::<proc_macro2::TokenStream>().unwrap()).len() == 1);
    }
}
