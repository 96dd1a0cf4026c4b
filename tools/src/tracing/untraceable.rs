//! Texts about programs whose functions cannot be traced.

use ringmark_function_tracer::sites::InFile;

use ringmark_console::units::counted;

/// Text for a file without patch sites, with what it needs.
pub(crate) const NO_SITES: &str = "no patchable functions; rebuild with -fpatchable-function-entry=5, \
                                   or in Rust with #[ringmark::trace_fn]";

/// Text for a program that loads no shared objects.
pub(crate) const STATIC: &str = "is linked statically: nothing can be preloaded";

/// Text that says why no function of a file can be traced, and what to do.
pub(crate) fn no_sites(found: &InFile) -> String {
    if found.is_static {
        return STATIC.to_owned();
    }
    if let Some(refused) = found.refused.first() {
        return format!(
            "none of its {} can be used, the first for this: {}; rebuild with \
             -fpatchable-function-entry=5",
            counted(found.refused.len() as u64, "patch site"),
            refused.reason
        );
    }
    match found.calls {
        Some(other) => format!(
            "no patchable functions: it was built with {}, its functions call {}, which is not \
             used here; rebuild with -fpatchable-function-entry=5",
            other.flags, other.called
        ),
        None => NO_SITES.to_owned(),
    }
}
