//! What a traced program calls.

mod async_spans;
mod common;
mod compile_errors;
mod guard;
mod macros_event;
mod macros_generic;
mod macros_grammar;
mod macros_instrument;
mod macros_limits;
mod open_spans;
#[cfg(feature = "bytemuck")]
mod plain_values;
mod public_items;
mod tracing_filter;
mod tracing_open_spans;
mod tracing_records;
