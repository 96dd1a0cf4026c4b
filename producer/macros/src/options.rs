//! What both macros accept: `name`, `level`, `category`, `target`.

use proc_macro2::Ident;
use syn::parse::ParseStream;
use syn::{LitStr, Token};

/// The facts of an event type, as far as they were given.
#[derive(Default)]
pub(crate) struct Options {
    pub(crate) name: Option<LitStr>,
    /// A variant of `Level`.
    pub(crate) level: Option<Ident>,
    pub(crate) category: Option<LitStr>,
    pub(crate) target: Option<LitStr>,
}

impl Options {
    /// Reads the value after `key`. `false`: the key is none of these; nothing was read.
    pub(crate) fn set(&mut self, key: &Ident, input: ParseStream<'_>) -> syn::Result<bool> {
        match key.to_string().as_str() {
            "name" => put(&mut self.name, key, name(text(input)?)?)?,
            "level" => put(&mut self.level, key, level(&text(input)?)?)?,
            "category" => put(&mut self.category, key, text(input)?)?,
            "target" => put(&mut self.target, key, text(input)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// `= "text"`.
pub(crate) fn text(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    input.parse()
}

/// Puts a value where none is yet.
pub(crate) fn put<T>(place: &mut Option<T>, key: &Ident, value: T) -> syn::Result<()> {
    if place.replace(value).is_some() {
        return Err(syn::Error::new(key.span(), format!("{key} is given twice")));
    }
    Ok(())
}

/// An error that names the known keys.
pub(crate) fn unknown<T>(key: &Ident, known: &str) -> syn::Result<T> {
    let message = format!("unknown option {key}: expected {known}");
    Err(syn::Error::new(key.span(), message))
}

fn name(text: LitStr) -> syn::Result<LitStr> {
    if text.value().is_empty() {
        return Err(syn::Error::new(
            text.span(),
            "name: found \"\", expected a name",
        ));
    }
    Ok(text)
}

fn level(text: &LitStr) -> syn::Result<Ident> {
    let variant = match text.value().as_str() {
        "error" => "Error",
        "warn" => "Warn",
        "info" => "Info",
        "debug" => "Debug",
        "trace" => "Trace",
        other => {
            let message =
                format!("level: found {other:?}, expected error, warn, info, debug or trace");
            return Err(syn::Error::new(text.span(), message));
        }
    };
    Ok(Ident::new(variant, text.span()))
}
