//! A function as tokens: its signature stays as it was written.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use syn::Error;

/// A function with a body.
pub(crate) struct Function {
    pub(crate) name: Ident,
    pub(crate) is_async: bool,
    /// Everything in front of the body.
    pub(crate) signature: Vec<TokenTree>,
    /// Type after `->`; empty for `()`.
    pub(crate) output: Vec<TokenTree>,
    pub(crate) body: Group,
}

impl Function {
    /// Takes a function apart.
    pub(crate) fn parse(item: TokenStream) -> syn::Result<Self> {
        let mut signature: Vec<TokenTree> = item.into_iter().collect();
        let wrong = |at: Option<&TokenTree>| {
            let span = at.map_or_else(Span::call_site, TokenTree::span);
            Error::new(span, "#[instrument] belongs on a function with a body")
        };
        let body = match signature.pop() {
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => group,
            other => return Err(wrong(other.as_ref())),
        };
        let keyword = signature.iter().position(|token| is(token, "fn"));
        let keyword = keyword.ok_or_else(|| wrong(signature.first()))?;
        let Some(TokenTree::Ident(name)) = signature.get(keyword + 1).cloned() else {
            return Err(wrong(signature.get(keyword)));
        };
        let before = &signature[..keyword];
        if let Some(token) = before.iter().find(|token| is(token, "const")) {
            let message =
                "#[instrument]: a const fn may run in the compiler, where nothing is traced";
            return Err(Error::new(token.span(), message));
        }
        Ok(Self {
            is_async: before.iter().any(|token| is(token, "async")),
            output: output(&signature[keyword + 2..]),
            name,
            signature,
            body,
        })
    }
}

pub(crate) fn is(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(ident) if ident == word)
}

pub(crate) fn is_punct(token: &TokenTree, character: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == character)
}

/// The type after the arguments. `rest` starts after the function's name.
fn output(rest: &[TokenTree]) -> Vec<TokenTree> {
    let behind = behind_arguments(rest);
    let Some((arrow, ty)) = behind.split_at_checked(2) else {
        return Vec::new();
    };
    if !(is_punct(&arrow[0], '-') && is_punct(&arrow[1], '>')) {
        return Vec::new();
    }
    ty.iter()
        .take_while(|token| !is(token, "where"))
        .cloned()
        .collect()
}

/// Steps over `<generics>` and `(arguments)`.
fn behind_arguments(rest: &[TokenTree]) -> &[TokenTree] {
    let mut depth = 0_usize;
    for (i, token) in rest.iter().enumerate() {
        let arrow = i > 0 && is_punct(&rest[i - 1], '-');
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !arrow => {
                depth = depth.saturating_sub(1);
            }
            TokenTree::Group(group)
                if depth == 0 && group.delimiter() == Delimiter::Parenthesis =>
            {
                return &rest[i + 1..];
            }
            _ => {}
        }
    }
    &[]
}

#[cfg(test)]
mod tests {
    use super::Function;

    fn parse(text: &str) -> Function {
        Function::parse(text.parse().unwrap()).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn output(text: &str) -> String {
        let tokens: proc_macro2::TokenStream = parse(text).output.into_iter().collect();
        tokens.to_string()
    }

    #[test]
    fn outputs() {
        assert_eq!(output("fn a() {}"), "");
        assert_eq!(output("fn a() -> u8 { 1 }"), "u8");
        assert_eq!(
            output("fn a<F: Fn(u8) -> u8>(f: F) -> Vec<F> where F: Copy {}"),
            "Vec < F >"
        );
        assert_eq!(
            output("fn a<const N: usize>(f: fn(u8) -> u8) -> [u8; N] {}"),
            "[u8 ; N]"
        );
        assert_eq!(output("fn a<T>(t: T) where T: Fn() -> u8 {}"), "");
    }

    #[test]
    fn kinds() {
        let function = parse("#[inline] pub(crate) async unsafe fn r#name(self) {}");
        assert!(function.is_async);
        assert_eq!(function.name, "r#name");
        assert!(!parse("#[doc = \"async\"] fn a(async_: u8) {}").is_async);
    }

    #[test]
    fn errors() {
        for (text, expected) in [
            ("struct A;", "a function with a body"),
            ("struct A {}", "a function with a body"),
            ("fn a();", "a function with a body"),
            ("", "a function with a body"),
            ("const fn a() {}", "const fn"),
        ] {
            let error = Function::parse(text.parse().unwrap()).err().unwrap();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
    }
}
