//! The program as the features of its package make it.
#![forbid(unsafe_code)]

fn main() {
    ringmark_test_functions::run();
}
