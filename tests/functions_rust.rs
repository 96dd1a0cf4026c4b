//! Promise: `#[ringmark::trace_fn]` makes Rust functions traceable, whatever their kind: each call
//! is there, with its end by a return, `?` or a panic. At rest a site is one NOP, and without the
//! feature the attribute leaves no byte.

#[allow(dead_code, reason = "its other half is for programs in C")]
mod calls;

use std::path::PathBuf;

use calls::{LOSSLESS, Program, own_counts};
use ringmark_tests::binary::built_with;

const PACKAGE: &str = "ringmark-test-functions";

/// The program with sites.
fn sites() -> PathBuf {
    built_with(PACKAGE, "functions-sites", "functions")
}

#[test]
fn each_call_is_there_with_its_end() {
    let program = Program::at(sites());
    let wishes = "tracer=graph;filter=*@functions-sites";
    let traced = program.trace(LOSSLESS, wishes, "10");
    println!("{:?}", traced.books);
    traced.books.expect_closed("rust");
    let own = own_counts(&traced.finished);
    traced.books.expect_calls(&own, "rust");
    let functions = &traced.books.functions;
    assert_eq!(functions.len(), own.len() + 2, "{functions:?}"); // Two leaves do not count.
    for (name, counts) in functions {
        assert_eq!(counts.loose, 0, "{name}");
        if name != "falls" {
            assert_eq!(counts.unwound, 0, "{name}");
        }
    }
    let falls = &functions["falls"];
    assert!(falls.unwound > 100 && falls.returned == 0, "{falls:?}");
}
