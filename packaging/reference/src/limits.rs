//! The page of limits: how much of a thing there may be, and what happens beyond.

use ringmark::__private::reference::LIMITS;
use ringmark_format::block::CONTENT_BYTES_MAX;
use ringmark_format::function::TRACERS_MAX;
use ringmark_format::page::{PAGE_BYTES_MAX, PAGE_BYTES_MIN};
use ringmark_format::panics::TEXT_BYTES_MAX;
use ringmark_reader::clean::DEAD_BYTES_MAX;

use crate::markdown::table;

const START: &str = "\
# Limits

How much of a thing there may be, and what happens beyond it. `docs/build` writes this page from the
code. [Settings](reference-settings.md) changes sizes of rings, pages and files.

## A traced program

";

/// The page.
pub(crate) fn page() -> String {
    // Links to items of the crate's documentation lead nowhere here.
    let of_program = LIMITS.replace("[`", "`").replace("`]", "`");
    let kib = |bytes: u32| format!("{} KiB", bytes >> 10);
    let row = |what: &str, limit: String, beyond: &str| [what.to_owned(), limit, beyond.to_owned()];
    let others = [
        row(
            "a page",
            format!("{} to {}", kib(PAGE_BYTES_MIN), kib(PAGE_BYTES_MAX)),
            "the program is untraced, and `list` says why",
        ),
        row(
            "message and file name of a panic",
            format!("{TEXT_BYTES_MAX} bytes each"),
            "cut",
        ),
        row(
            "function tracers of a process, over its whole life",
            TRACERS_MAX.to_string(),
            "the next one is refused",
        ),
        row(
            "ring files of dead processes in one directory, if no recorder takes them",
            format!(
                "{} MiB; a quarter of the file system, where that is less",
                DEAD_BYTES_MAX >> 20
            ),
            "a start removes the oldest, and `list` says so",
        ),
        row(
            "content of a block of a trace file",
            format!("{} MiB", CONTENT_BYTES_MAX >> 20),
            "readers take the block for damaged",
        ),
    ];
    [
        START,
        &of_program,
        "\n## Everything else\n\n",
        &table(["what", "limit", "beyond it"], others),
    ]
    .concat()
}
