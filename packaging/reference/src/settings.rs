//! The page of settings: keys of `RINGMARK` and environment variables.

use ringmark::__private::reference::{KEYS, VARIABLES, Variable};

use crate::markdown::{cell, code, table};
use crate::variables;

const START: &str = "\
# Settings

You set what a traced program does with environment variables. `docs/build` writes this page from the
code that reads them. `ringmark help COMMAND` and [the page of commands](reference-commands.md) have the options of
commands.

## Keys of RINGMARK

A program that calls `start_from_env()` is traced if `RINGMARK` is `1` (all defaults) or a list such as
`mode=overwrite,ring=1M`. With `0`, an empty value or no such variable it is not traced. A key or value that cannot be
used leaves the program untraced; `ringmark list` and `RINGMARK_VERBOSE=1` name it. On a system where Ringmark
[does not trace](../../README.md#when-not-to-use-it) a program is untraced whatever is set, and
`RINGMARK_VERBOSE=1` says so. `ringmark run` and `record -- CMD` set the variable for their program, unless you set it.
Code sets the same options with `Session::builder()`.

A process may hold several copies of the library: the program's own, a plugin's, the function tracer's. Each has a
session with these settings, so a program with events whose functions are traced takes twice the memory. All of them
need the same `clock`: a copy with another one than the first, or with `none`, stays off, and `ringmark list` says so. A
function tracer that is loaded into a running process takes the clock of its sessions, and prepares no rings.

Sizes are bytes, with `K`, `M` or `G` for powers of 1024. Switches are `on` or `off`.

";

/// The page.
pub(crate) fn page() -> String {
    let keys = KEYS.iter().map(|key| {
        let (name, default) = (code(key.name), code(key.default));
        [name, default, cell(key.values), cell(key.effect)]
    });
    [
        START,
        &table(["key", "default", "unit and range", "effect, and when to change it"], keys),
        "\n## Variables that programs read\n\n",
        &variables_table(VARIABLES),
        "\n## Variables that tools read\n\nAlso `RINGMARK_DIR`, and what `run` and `record` give to their program.\n\n",
        &variables_table(variables::TOOLS.map(|(variable, _)| variable)),
    ]
    .concat()
}

fn variables_table(variables: impl IntoIterator<Item = Variable>) -> String {
    let rows = variables.into_iter().map(|variable| {
        let names: Vec<_> = variable.name.split(", ").map(code).collect();
        [
            names.join(", "),
            cell(variable.default),
            cell(variable.effect),
        ]
    });
    table(["variable", "default", "effect"], rows)
}
