//! What a compiler of C and C++ can do here.

use ringmark_tests::compiler::can_build;

use super::c::Compiler;

/// Whether programs that it builds with these flags run.
pub(crate) fn can(compiler: Compiler, flags: &str) -> bool {
    can_build(compiler.of(flags.contains("-x c++")), flags)
}
