//! Tells the tests where the programs lie that they run: `./test build` puts them there, optimised.

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // <target>/PROFILE/build/ringmark-tests-HASH/out
    let out = env::var_os("OUT_DIR").expect("Cargo says where a build script writes");
    let target = PathBuf::from(out)
        .ancestors()
        .nth(4)
        .map(|dir| dir.join("release"));
    let built = target.expect("a target directory");
    println!("cargo::rustc-env=RINGMARK_BUILT={}", built.display());
}
