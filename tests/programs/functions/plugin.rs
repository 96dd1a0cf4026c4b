//! What modules.c loads, in Rust.
#![crate_type = "cdylib"]

#[no_mangle]
#[inline(never)]
extern "C" fn plugin_inner(x: i32) -> i32 {
    std::hint::black_box(x + 1)
}

#[no_mangle]
extern "C" fn plugin_outer(x: i32) -> i32 {
    plugin_inner(x) * 2
}
