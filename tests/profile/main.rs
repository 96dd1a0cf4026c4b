//! Programs that nobody prepared, looked at from outside.
#![forbid(unsafe_code)]

mod allowed;
mod known_waits;
mod many_threads;
mod page_of_profile;
mod profile_cost;
mod samples;
mod seen_waits;
mod shares;
mod switches;
mod what_spans_did;
