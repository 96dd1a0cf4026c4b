//! `#[derive(Event)]`.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::ParseStream;
use syn::spanned::Spanned;
use syn::{Attribute, Data, DeriveInput, Error, Fields, LitStr, Token, Type};

use crate::options::{self, Options};

/// A struct that can be an event.
struct Event {
    ident: Ident,
    options: Options,
    fields: Vec<Field>,
}

struct Field {
    ident: Ident,
    ty: Type,
    options: FieldOptions,
}

#[derive(Default)]
struct FieldOptions {
    unit: Option<LitStr>,
    redact: bool,
    skip: bool,
}

/// The implementation of `ringmark::Event`, or what is wrong with the struct.
pub(crate) fn expand(item: TokenStream) -> syn::Result<TokenStream> {
    Ok(Event::parse(syn::parse2(item)?)?.implementation())
}

impl Event {
    fn parse(input: DeriveInput) -> syn::Result<Self> {
        check_repr(&input)?;
        let options = parse_options(&input.attrs)?;
        let wrong = |message: &str| Err(Error::new(input.ident.span(), message));
        if !input.generics.params.is_empty() {
            return wrong("an event has no generics: one struct is one event type");
        }
        let Data::Struct(data) = input.data else {
            return wrong("an event is a struct");
        };
        let Fields::Named(named) = data.fields else {
            return wrong("an event needs named fields: they name the values in the trace");
        };
        let fields = named.named.into_iter().map(Field::parse);
        Ok(Self {
            options,
            fields: fields.collect::<syn::Result<_>>()?,
            ident: input.ident,
        })
    }
}

/// `repr(C)`, not packed: offsets are known, and no value crosses a word.
fn check_repr(input: &DeriveInput) -> syn::Result<()> {
    let mut c = false;
    for attribute in input.attrs.iter().filter(|a| a.path().is_ident("repr")) {
        attribute.parse_nested_meta(|meta| {
            c |= meta.path.is_ident("C");
            if meta.path.is_ident("packed") {
                return Err(meta.error("an event cannot be packed: its values are aligned"));
            }
            if meta.input.peek(syn::token::Paren) {
                meta.input.parse::<proc_macro2::TokenTree>()?;
            }
            Ok(())
        })?;
    }
    if c {
        return Ok(());
    }
    let message = "an event needs #[repr(C)]: the record has the layout of the struct";
    Err(Error::new(input.ident.span(), message))
}

/// Reads every `#[event(…)]`: `each` gets a key and what follows it.
fn each_option(
    attributes: &[Attribute],
    mut each: impl FnMut(&Ident, ParseStream<'_>) -> syn::Result<()>,
) -> syn::Result<()> {
    for attribute in attributes.iter().filter(|a| a.path().is_ident("event")) {
        attribute.parse_args_with(|input: ParseStream<'_>| {
            while !input.is_empty() {
                let key: Ident = input.parse()?;
                each(&key, input)?;
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn parse_options(attributes: &[Attribute]) -> syn::Result<Options> {
    let mut all = Options::default();
    each_option(attributes, |key, input| {
        if all.set(key, input)? {
            return Ok(());
        }
        options::unknown(key, "name, level, category or target")
    })?;
    Ok(all)
}

impl Field {
    fn parse(field: syn::Field) -> syn::Result<Self> {
        let Some(ident) = field.ident else {
            return Err(Error::new(field.ty.span(), "a field needs a name"));
        };
        let mut all = FieldOptions::default();
        each_option(&field.attrs, |key, input| {
            match key.to_string().as_str() {
                "unit" => options::put(&mut all.unit, key, options::text(input)?)?,
                "redact" => all.redact = true,
                "skip" => all.skip = true,
                _ => return options::unknown(key, "unit, redact or skip"),
            }
            Ok(())
        })?;
        if !all.skip {
            check_type(&ident, &field.ty)?;
        }
        Ok(Self {
            ident,
            ty: field.ty,
            options: all,
        })
    }

    /// The name without `r#`.
    fn name(&self) -> String {
        let text = self.ident.to_string();
        text.strip_prefix("r#").unwrap_or(&text).to_owned()
    }

    fn description(&self, event: &Ident) -> TokenStream {
        let (ident, ty, name) = (&self.ident, &self.ty, self.name());
        let unit = self
            .options
            .unit
            .as_ref()
            .map_or(String::new(), LitStr::value);
        let redacted = self.options.redact;
        quote_spanned! { ty.span() =>
            ::ringmark::client::Field {
                name: #name,
                place: ::ringmark::client::Place::of::<#ty>(
                    ::core::mem::offset_of!(#event, #ident)
                ),
                semantic: 0,
                unit: #unit,
                redacted: #redacted,
            }
        }
    }

    fn encode(&self, event: &Ident) -> TokenStream {
        let (ident, ty) = (&self.ident, &self.ty);
        quote_spanned! { ty.span() =>
            ::ringmark::Value::encode(
                &self.#ident, to, ::core::mem::offset_of!(#event, #ident));
        }
    }

    /// Proof that the struct holds the value itself, as the record does.
    fn proof(&self) -> TokenStream {
        let ty = &self.ty;
        let message = not_fixed(&self.ident, ty);
        quote_spanned! { ty.span() =>
            const _: () = ::core::assert!(
                ::core::mem::size_of::<#ty>() == <#ty as ::ringmark::Value>::BYTES
                    && !::core::matches!(
                        <#ty as ::ringmark::Value>::KIND,
                        ::ringmark::Kind::Str | ::ringmark::Kind::Bytes
                    ),
                #message
            );
        }
    }
}

fn not_fixed(field: &Ident, ty: &Type) -> String {
    let ty = ty.to_token_stream();
    format!(
        "field {field}: {ty} is no value of fixed size; expected a number, bool, char, or an array of them"
    )
}

/// Refuses early what is seen to be of no fixed size, for a short error.
fn check_type(field: &Ident, ty: &Type) -> syn::Result<()> {
    let dynamic = match ty {
        Type::Reference(_) | Type::Slice(_) | Type::Ptr(_) | Type::Tuple(_) => true,
        Type::Path(path) => path.path.segments.last().is_some_and(|last| {
            ["String", "str", "Vec", "Box", "Option"]
                .iter()
                .any(|name| last.ident == name)
        }),
        _ => false,
    };
    if dynamic {
        return Err(Error::new(ty.span(), not_fixed(field, ty)));
    }
    Ok(())
}

impl Event {
    fn implementation(&self) -> TokenStream {
        let ident = &self.ident;
        let described = self.fields.iter().filter(|f| !f.options.skip);
        let fields = described.clone().map(|f| f.description(ident));
        let proofs = described.clone().map(Field::proof);
        let encodes = described
            .filter(|f| !f.options.redact)
            .map(|f| f.encode(ident));
        let facts = self.facts();
        quote! {
            const _: () = {
                static __RINGMARK_STATE: ::ringmark::client::TypeState =
                    ::ringmark::client::TypeState::new();
                #(#proofs)*
                impl ::ringmark::Event for #ident {
                    const FIELDS: &'static [::ringmark::client::Field] = &[#(#fields),*];
                    const BYTES: usize = ::core::mem::size_of::<#ident>();
                    fn event() -> ::ringmark::client::EventType {
                        #facts
                    }
                    #[inline(always)]
                    fn state() -> &'static ::ringmark::client::TypeState {
                        &__RINGMARK_STATE
                    }
                    #[inline(always)]
                    fn encode(&self, to: &mut ::ringmark::Encoder<'_, '_>) {
                        let _ = &to;
                        #(#encodes)*
                    }
                }
            };
        }
    }

    fn facts(&self) -> TokenStream {
        let options = &self.options;
        let name = options
            .name
            .as_ref()
            .map_or(self.ident.to_string(), LitStr::value);
        let category = options
            .category
            .as_ref()
            .map_or(String::new(), LitStr::value);
        let target = match &options.target {
            Some(target) => target.to_token_stream(),
            None => quote!(::core::module_path!()),
        };
        let level = options
            .level
            .as_ref()
            .map_or(quote!(Info), Ident::to_token_stream);
        quote! {
            ::ringmark::client::EventType {
                name: #name,
                target: #target,
                category: #category,
                level: ::ringmark::Level::#level,
                shape: ::ringmark::client::Shape::Instant,
                file: ::core::file!(),
                line: ::core::line!(),
                state: &__RINGMARK_STATE,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::expand;

    fn error(item: &str) -> String {
        expand(item.parse().unwrap()).unwrap_err().to_string()
    }

    /// Items that are refused, and a part of the reason.
    const REFUSED: &[(&str, &str)] = &[
        ("struct A { a: u8 }", "needs #[repr(C)]"),
        (
            "#[repr(transparent)] struct A { a: u8 }",
            "needs #[repr(C)]",
        ),
        ("#[repr(C, packed)] struct A { a: u8 }", "cannot be packed"),
        (
            "#[repr(C, packed(2))] struct A { a: u8 }",
            "cannot be packed",
        ),
        ("#[repr(C)] struct A(u8);", "needs named fields"),
        ("#[repr(C)] struct A;", "needs named fields"),
        ("#[repr(C)] enum A { B }", "is a struct"),
        ("#[repr(C)] union A { b: u8 }", "is a struct"),
        ("#[repr(C)] struct A<T> { a: T }", "no generics"),
        ("#[repr(C)] struct A<'a> { a: &'a str }", "no generics"),
        (
            "#[repr(C)] struct A { a: &'static str }",
            "field a: & 'static str is no value of fixed size",
        ),
        (
            "#[repr(C)] struct A { b: std::string::String }",
            "field b: std :: string :: String is no value",
        ),
        (
            "#[repr(C)] struct A { c: Vec<u8> }",
            "field c: Vec < u8 > is no value",
        ),
        (
            "#[repr(C)] struct A { c: (u8, u8) }",
            "field c: (u8 , u8) is no value",
        ),
        (
            "#[event(level = \"loud\")] #[repr(C)] struct A { a: u8 }",
            "level: found \"loud\", expected error, warn",
        ),
        (
            "#[event(name = \"\")] #[repr(C)] struct A { a: u8 }",
            "name: found \"\"",
        ),
        (
            "#[event(nam = \"x\")] #[repr(C)] struct A { a: u8 }",
            "unknown option nam: expected name, level",
        ),
        (
            "#[event(name = \"x\", name = \"y\")] #[repr(C)] struct A { a: u8 }",
            "name is given twice",
        ),
        (
            "#[event(name = 3)] #[repr(C)] struct A { a: u8 }",
            "expected string literal",
        ),
        (
            "#[event(name = \"x\" level = \"info\")] #[repr(C)] struct A { a: u8 }",
            "expected `,`",
        ),
        (
            "#[repr(C)] struct A { #[event(units = \"ns\")] a: u8 }",
            "unknown option units: expected unit, redact or skip",
        ),
        (
            "#[repr(C)] struct A { #[event(unit = \"a\", unit = \"b\")] a: u8 }",
            "unit is given twice",
        ),
    ];

    #[test]
    fn errors_name_what_is_wrong() {
        for &(item, expected) in REFUSED {
            let found = error(item);
            assert!(found.contains(expected), "{item}: {found}");
        }
    }

    #[test]
    fn what_is_fine_expands_without_unsafe() {
        for item in [
            "#[repr(C)] struct A { a: u8 }",
            "#[repr(C)] pub struct A {}",
            "#[repr(C, align(64))] #[derive(Clone)] struct A { a: [u16; 4], r#type: f64 }",
            "#[repr(C)] struct A { #[event(skip)] a: Option<Box<u8>>, #[event(redact, unit = \"x\")] b: u8, }",
        ] {
            let tokens = expand(item.parse().unwrap()).unwrap().to_string();
            assert!(!tokens.contains("unsafe"), "{item}");
        }
    }

    #[test]
    fn a_redacted_or_skipped_value_is_not_encoded() {
        let item =
            "#[repr(C)] struct A { #[event(skip)] one: u8, #[event(redact)] two: u8, three: u8 }";
        let tokens = expand(item.parse().unwrap()).unwrap().to_string();
        assert!(!tokens.contains("self . one") && !tokens.contains("\"one\""));
        assert!(!tokens.contains("self . two") && tokens.contains("\"two\""));
        assert!(tokens.contains("self . three"));
    }
}
