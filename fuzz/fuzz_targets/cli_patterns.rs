//! Text of the command line and of the environment.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ringmark_fuzz::cli_patterns::run(input));
