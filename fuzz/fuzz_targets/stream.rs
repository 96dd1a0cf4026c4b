//! What a streamer says to a collector, as it is and with its checksums made right.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| ringmark_fuzz::stream::run(input));
