//! A schema stream, and records of its types.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ringmark_fuzz::schema::run(input));
