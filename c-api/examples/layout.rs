//! Prints `ringmark_layout.h`.

fn main() {
    print!("{}", ringmark_c::layout::text());
}
