//! `#[trace_fn]` on functions, and on blocks of them.

use proc_macro2::{Delimiter, Group, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::Error;

use crate::function::{is, is_punct};
use crate::items::{Item, Kind, items};

/// What the attribute stands on, with sites, or what is wrong. Unless it `is_on` only mistakes are
/// found.
pub(crate) fn expand(
    options: TokenStream,
    item: TokenStream,
    is_on: bool,
) -> syn::Result<TokenStream> {
    if let Some(token) = options.into_iter().next() {
        return Err(Error::new(token.span(), "#[trace_fn] has no options"));
    }
    let mut items = items(item);
    match items.pop() {
        Some(item) if items.is_empty() => expand_item(item, is_on),
        _ => Err(wrong(Span::call_site())),
    }
}

fn expand_item(item: Item, is_on: bool) -> syn::Result<TokenStream> {
    let span = item
        .tokens
        .get(item.attributes)
        .map_or_else(Span::call_site, TokenTree::span);
    match (item.kind, item.body()) {
        (Kind::Function, Some(_)) => match unfit(&item) {
            Some((span, why)) => Err(Error::new(span, format!("#[trace_fn]: {why}"))),
            None if is_on => Ok(with_site(item)),
            None => Ok(item.tokens.into_iter().collect()),
        },
        (Kind::Block, Some(_)) if is_on => Ok(block(item)),
        (Kind::Block, Some(_)) => Ok(item.tokens.into_iter().collect()),
        _ => Err(wrong(span)),
    }
}

fn wrong(at: Span) -> Error {
    let text = "#[trace_fn] belongs on a function with a body, or on an `impl`, a `trait` or a \
                `mod` with its items";
    Error::new(at, text)
}

/// Why a function can have no patch site, and the place of the error.
fn unfit(item: &Item) -> Option<(Span, &'static str)> {
    let head = || item.tokens[item.attributes..].iter();
    let word = |word| head().find(|token| is(token, word)).map(TokenTree::span);
    if item.is_marked("const") {
        let why = "a const fn may run in the compiler, where nothing is traced";
        return Some((word("const")?, why));
    }
    if item.is_marked("async") {
        let why = "a call of an async fn only makes a future: #[instrument] records its polls";
        return Some((word("async")?, why));
    }
    let mut attributes = item.attributes();
    attributes.find_map(|(at, content)| {
        let why = match inline(&content)? {
            Inline::Always => "what is inlined has no beginning of its own: no inline(always)",
            Inline::Naked => "a naked function has no place for a site",
            Inline::Hint | Inline::Never => return None,
        };
        Some((item.tokens[at].span(), why))
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inline {
    Hint,
    Never,
    Always,
    Naked,
}

/// What an attribute asks of inlining.
fn inline(content: &[TokenTree]) -> Option<Inline> {
    let argument = |at: usize| match content.get(at) {
        Some(TokenTree::Group(group)) => group.stream().to_string(),
        _ => String::new(),
    };
    let name = content.first()?;
    if is(name, "naked") || is(name, "unsafe") && argument(1) == "naked" {
        return Some(Inline::Naked);
    }
    is(name, "inline").then(|| match argument(1).as_str() {
        "always" => Inline::Always,
        "never" => Inline::Never,
        _ => Inline::Hint,
    })
}

/// The function with a site at its beginning. It is not inlined: a copy in another function has no
/// return of its own.
fn with_site(item: Item) -> TokenStream {
    let hints = item.attributes().filter(|(_, content)| {
        let said = inline(content);
        said == Some(Inline::Hint) || said == Some(Inline::Never)
    });
    let hints: Vec<_> = hints.map(|(at, _)| at).collect();
    let mut tokens = item.tokens;
    let Some(TokenTree::Group(body)) = tokens.pop() else {
        return tokens.into_iter().collect();
    };
    let is_kept = |at: &usize| !hints.contains(at) && !hints.contains(&(at + 1));
    let kept = (0..).zip(tokens).filter(|(at, _)| is_kept(at));
    let signature: TokenStream = kept.map(|(_, token)| token).collect();
    let (inner, rest) = inner_attributes(&body);
    let site = quote_spanned!(Span::mixed_site()=> ::ringmark::__private::function_site(););
    let body = braces(quote!(#inner #site #rest), &body);
    quote!(#[inline(never)] #signature #body)
}

/// The attributes at the beginning of a body, and the rest.
fn inner_attributes(body: &Group) -> (TokenStream, TokenStream) {
    let tokens: Vec<TokenTree> = body.stream().into_iter().collect();
    let is_one = |at: &usize| {
        let both = tokens.get(at + 1).map(|mark| (&tokens[*at], mark));
        both.is_some_and(|(hash, mark)| is_punct(hash, '#') && is_punct(mark, '!'))
    };
    let count = (0..tokens.len()).step_by(3).take_while(is_one).count();
    let (inner, rest) = tokens.split_at((3 * count).min(tokens.len()));
    (
        inner.iter().cloned().collect(),
        rest.iter().cloned().collect(),
    )
}

fn braces(content: TokenStream, like: &Group) -> TokenTree {
    let mut group = Group::new(Delimiter::Brace, content);
    group.set_span(like.span());
    TokenTree::Group(group)
}

/// The block with sites in its functions and in those of its blocks.
fn block(mut item: Item) -> TokenStream {
    let Some(TokenTree::Group(body)) = item.tokens.pop() else {
        return item.tokens.into_iter().collect();
    };
    let content = items(body.stream()).into_iter().map(member).collect();
    item.tokens.push(braces(content, &body));
    item.tokens.into_iter().collect()
}

/// What can have no site stays as it is, and so does what speaks for itself.
fn member(item: Item) -> TokenStream {
    let names = |name: &str| {
        let mut attributes = item.attributes();
        attributes.any(|(_, content)| last_of_path(&content).is_some_and(|word| word == name))
    };
    let is_spoken_for = names("notrace") || names("trace_fn");
    match item.kind {
        _ if is_spoken_for || item.body().is_none() => item.tokens.into_iter().collect(),
        Kind::Block => block(item),
        Kind::Function if unfit(&item).is_none() => with_site(item),
        Kind::Function | Kind::Other => item.tokens.into_iter().collect(),
    }
}

/// `c` of `a::b::c(…)`.
fn last_of_path(content: &[TokenTree]) -> Option<&Ident> {
    let path = content
        .iter()
        .take_while(|token| matches!(token, TokenTree::Ident(_)) || is_punct(token, ':'));
    match path.last() {
        Some(TokenTree::Ident(word)) => Some(word),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    fn expanded(item: &str, is_on: bool) -> Result<String, String> {
        let tokens = expand(Default::default(), item.parse().unwrap(), is_on);
        tokens.map(|t| t.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (item, expected) in [
            ("", "a function with a body"),
            ("struct A { b: u8 }", "a function with a body"),
            ("fn a();", "a function with a body"),
            ("mod a;", "a function with a body"),
            ("fn a() {} fn b() {}", "a function with a body"),
            ("pub const fn a() {}", "a const fn may run in the compiler"),
            ("async fn a() {}", "only makes a future"),
            ("pub(crate) async unsafe fn a() {}", "only makes a future"),
            ("#[inline(always)] fn a() {}", "no inline(always)"),
            ("#[unsafe(naked)] extern \"C\" fn a() {}", "naked"),
        ] {
            for is_on in [true, false] {
                let found = expanded(item, is_on).unwrap_err();
                assert!(found.contains(expected), "{item}: {found}");
            }
        }
        let option = expand("x".parse().unwrap(), "fn a() {}".parse().unwrap(), true);
        assert!(option.unwrap_err().to_string().contains("no options"));
    }

    #[test]
    fn a_site_is_the_first_statement_behind_inner_attributes() {
        let item =
            "#[doc = \"Says.\"] #[inline] pub fn a<'b>(b: &'b u8) -> &'b u8 { #![allow(x)] b }";
        let found = expanded(item, true).unwrap();
        let expected = "#[inline(never)] #[doc = \"Says.\"] pub fn a<'b>(b: &'b u8) -> &'b u8 { \
                        #![allow(x)] ::ringmark::__private::function_site(); b }";
        let bare = |text: &str| text.replace(char::is_whitespace, "");
        assert_eq!(bare(&found), bare(expected));
        let never = expanded("#[inline(never)] #[cold] fn a() {}", true).unwrap();
        assert_eq!(never.matches("inline").count(), 1);
        assert!(never.contains("# [cold]"));
    }

    #[test]
    fn blocks_hold_sites_where_they_can() {
        let item = "mod m { #![allow(x)] use a::b; fn one() {} const fn none() {} impl X { \
                    fn two(&self) {} async fn none() {} #[ringmark::notrace] fn none() {} } \
                    trait T { fn none(); fn three() { fn none() {} } } mod file; \
                    #[notrace] mod n { fn none() {} } #[trace_fn] fn itself() {} \
                    const A: fn() = { fn none() {} none }; #[inline(always)] fn none() {} \
                    extern \"C\" { fn none(); } macro_rules! o { () => { fn none() {} } } }";
        let found = expanded(item, true).unwrap();
        assert_eq!(found.matches("function_site").count(), 3, "{found}");
        for name in ["one", "two", "three"] {
            let function = found.split_once(&format!("fn {name} ")).unwrap().1;
            let body = function.split_once('{').unwrap().1.trim_start();
            assert!(
                body.starts_with(":: ringmark :: __private :: function_site"),
                "{found}"
            );
        }
    }

    #[test]
    fn nothing_is_left_without_the_feature() {
        for item in ["#[inline] fn a() { b() }", "impl A { fn b() {} }"] {
            let same: proc_macro2::TokenStream = item.parse().unwrap();
            assert_eq!(expanded(item, false).unwrap(), same.to_string());
        }
    }
}
