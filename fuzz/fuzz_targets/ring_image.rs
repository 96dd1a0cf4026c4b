//! The ring file of a session, still or changing.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ringmark_fuzz::ring_image::run(input));
