//! `#[instrument]`.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::{LitStr, Token};

use crate::function::Function;
use crate::options::{self, Options};

/// The options of the attribute.
#[derive(Default)]
struct Instrument {
    options: Options,
    /// Arguments as `event!` takes them.
    fields: Option<TokenStream>,
}

/// The function with a span around its body, or what is wrong.
pub(crate) fn expand(options: TokenStream, item: TokenStream) -> syn::Result<TokenStream> {
    let options = Instrument::parse.parse2(options)?;
    let function = Function::parse(item)?;
    let event = options.event(&function.name);
    let body = if function.is_async {
        async_body(&function, &event)
    } else {
        body(&function, &event)
    };
    let signature = function.signature.into_iter().collect::<TokenStream>();
    Ok(quote!(#signature { #body }))
}

impl Instrument {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut all = Self::default();
        while !input.is_empty() {
            let key: Ident = input.parse()?;
            all.set(&key, input)?;
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(all)
    }

    fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<()> {
        if self.options.set(key, input)? {
            return Ok(());
        }
        match key.to_string().as_str() {
            "fields" => options::put(&mut self.fields, key, group(input)?)?,
            "skip" => drop(group(input)?),
            "skip_all" => {}
            _ => return options::unknown(key, "name, level, category, target, fields or skip"),
        }
        Ok(())
    }

    /// What stands between the parentheses of `event!`.
    fn event(&self, function: &Ident) -> TokenStream {
        let mut all = TokenStream::new();
        if let Some(level) = &self.options.level {
            all.extend(quote!(level: #level,));
        }
        if let Some(category) = &self.options.category {
            all.extend(quote!(category: #category,));
        }
        if let Some(target) = &self.options.target {
            all.extend(quote!(target: #target,));
        }
        all.extend(match &self.options.name {
            Some(name) => name.to_token_stream(),
            None => plain_name(function).to_token_stream(),
        });
        if let Some(fields) = &self.fields {
            all.extend(quote!(, #fields));
        }
        all
    }
}

fn plain_name(function: &Ident) -> LitStr {
    let text = function.to_string();
    LitStr::new(text.strip_prefix("r#").unwrap_or(&text), function.span())
}

/// What stands in `(…)`.
fn group(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    input.parse::<Group>().map(|group| group.stream())
}

fn span_name() -> Ident {
    Ident::new("ringmark_span", Span::mixed_site())
}

fn body(function: &Function, event: &TokenStream) -> TokenStream {
    let (span, body) = (span_name(), function.body.stream());
    quote! {
        let #span = ::ringmark::__record!(@options (instrument) [] [] [] #event);
        #body
    }
}

/// Made at the first poll: the body of an `async fn` does not run before.
fn async_body(function: &Function, event: &TokenStream) -> TokenStream {
    let (span, body) = (span_name(), function.body.stream());
    let hint = type_hint(&function.output);
    quote! {
        let #span = ::ringmark::__record!(@options (instrument_async) [] [] [] #event);
        ::ringmark::InSpan::in_span(async move { #hint #body }, #span).await
    }
}

/// Gives the compiler the type of an `async` block, which cannot be written: a `return` that never
/// runs. Without it what `return` and `?` convert to would be unknown.
fn type_hint(output: &[TokenTree]) -> TokenStream {
    let output: TokenStream = output.iter().cloned().collect();
    let opaque = |token: TokenTree| matches!(&token, TokenTree::Ident(word) if word == "impl");
    let never = output.to_string() == "!";
    if output.is_empty() || never || flat(output.clone()).into_iter().any(opaque) {
        return TokenStream::new();
    }
    quote! {
        if let ::core::option::Option::Some(never) =
            ::core::option::Option::None::<::core::convert::Infallible>
                .map(|never| -> #output { match never {} })
        {
            return never;
        }
    }
}

/// All tokens, those in groups, too.
fn flat(tokens: TokenStream) -> Vec<TokenTree> {
    let each = tokens.into_iter().flat_map(|token| match token {
        TokenTree::Group(group) => flat(group.stream()),
        other => vec![other],
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::expand;

    fn expanded(options: &str, item: &str) -> Result<String, String> {
        let tokens = expand(options.parse().unwrap(), item.parse().unwrap());
        tokens.map(|t| t.to_string()).map_err(|e| e.to_string())
    }

    #[test]
    fn errors_name_what_is_wrong() {
        for (options, expected) in [
            ("level = \"loud\"", "level: found \"loud\""),
            (
                "lvl = \"info\"",
                "unknown option lvl: expected name, level, category, target, fields or skip",
            ),
            ("name = \"a\" level = \"info\"", "expected `,`"),
            ("fields(a), fields(b)", "fields is given twice"),
            ("\"name\"", "expected identifier"),
            ("fields", "unexpected end of input"),
        ] {
            let found = expanded(options, "fn a() {}").unwrap_err();
            assert!(found.contains(expected), "{options}: {found}");
        }
    }

    #[test]
    fn nothing_is_recorded_that_was_not_declared() {
        for options in ["", "skip(password)", "skip_all", "name = \"login\""] {
            let found = expanded(options, "fn f(password: &str) { use_it() }").unwrap();
            assert_eq!(found.matches("password").count(), 1, "{found}");
        }
    }

    #[test]
    fn options_come_in_the_order_of_the_grammar() {
        let options =
            "fields(a, b = 1,), target = \"t\", name = \"n\", level = \"debug\", category = \"c\"";
        let found = expanded(options, "fn f(a: u8) {}").unwrap();
        let expected = "level : Debug , category : \"c\" , target : \"t\" , \"n\" , a , b = 1 ,";
        assert!(found.contains(expected), "{found}");
    }

    #[test]
    fn opaque_types_get_no_hint() {
        let hint = |item| expanded("", item).unwrap().contains("return never");
        assert!(hint("async fn f() -> Result<u8, E> {}"));
        assert!(!hint("async fn f() -> Option<impl Copy> {}"));
        assert!(!hint("async fn f() -> [impl Copy; 2] {}"));
        assert!(!hint("async fn f() -> ! {}"));
        assert!(!hint("async fn f() {}"));
    }
}
