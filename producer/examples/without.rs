//! The same program as `hot_path` without Ringmark: what the library adds is the difference.

use std::hint::black_box;

fn main() {
    for i in 0..1000_u64 {
        black_box(i);
    }
}
