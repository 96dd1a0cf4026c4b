//! `#[derive(Event)]`, `#[instrument]` and `#[trace_fn]`, for use through `ringmark`, which has
//! the examples.
//!
//! The generated code holds no `unsafe`: a program may forbid it.
#![forbid(unsafe_code)]

mod event;
mod function;
mod instrument;
mod items;
mod options;
mod trace_fn;

use proc_macro::TokenStream;

/// `ringmark::emit(&value)` records the fields of the struct.
///
/// The struct is `#[repr(C)]`, has named fields of fixed size (numbers, `bool`, `char`, arrays of
/// them) and no generics. A record's payload has the layout of the struct.
///
/// On the struct: `#[event(name = "request.done", level = "debug", category = "http",
/// target = "app")]`; without them the name of the struct, `info`, no category and the module.
/// On a field: `unit = "ns"`; `redact` (the field is described, its value is never recorded);
/// `skip` (it is not even described).
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(item: TokenStream) -> TokenStream {
    finish(event::expand(item.into()))
}

/// Options: `name = "…"` (without it the name of the function), `level`, `category`, `target`, and
/// `fields(…)` as in `event!`. **No argument is recorded that `fields` does not name**; `skip(…)`
/// and `skip_all` are accepted and change nothing. Values are taken when the call begins; of a
/// text or a byte slice at most 512 bytes.
///
/// A function gives one record when it returns, with its duration. An `async fn` gives a span with
/// an id from its first poll on: entered and left at each poll, closed when its future is dropped.
/// A plain function that returns a future is traced as what it is: the call, not the future.
#[proc_macro_attribute]
pub fn instrument(options: TokenStream, item: TokenStream) -> TokenStream {
    finish(instrument::expand(options.into(), item.into()))
}

/// It stands on a function, or on an `impl`, a `trait` or a `mod` for every function in it. A patch
/// site is five bytes that do nothing until a function tracer enables it.
///
/// Without the feature `functions` of `ringmark` the attribute changes nothing and leaves no byte.
/// With it the function is not inlined, because its calls would be part of those around it; so it
/// replaces `#[inline]`. Each instance of a generic function has a patch site of its own, unless
/// the compiler merges instances that are alike. Closures have none.
///
/// A function that can have no patch site is an error: a `const fn`, an `async fn` (whose call only
/// makes a future: see [`macro@instrument`]), one that is always inlined or naked. In a block such
/// functions stay as they are, and so does everything that has `#[ringmark::notrace]`.
#[proc_macro_attribute]
pub fn trace_fn(options: TokenStream, item: TokenStream) -> TokenStream {
    let is_on = cfg!(feature = "functions");
    finish(trace_fn::expand(options.into(), item.into(), is_on))
}

/// Alone the attribute does nothing.
#[proc_macro_attribute]
pub fn notrace(_options: TokenStream, item: TokenStream) -> TokenStream {
    item
}

fn finish(expanded: syn::Result<proc_macro2::TokenStream>) -> TokenStream {
    expanded
        .unwrap_or_else(|error| error.into_compile_error())
        .into()
}
