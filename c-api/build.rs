//! The shared object's name in programs, and that it stays mapped: they hold pointers into it.
#![forbid(unsafe_code)]

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libringmark.so.0");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
