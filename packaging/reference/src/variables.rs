//! The environment variables that commands use: those of traced programs, and those of the tools.

use ringmark::__private::reference::{VARIABLES, Variable};

/// Commands that look at sessions or start programs.
const LIVE: &[&str] = &[
    "run", "list", "record", "snapshot", "stream", "events", "trace", "cat", "top", "graph",
    "report", "clean", "demo", "doctor",
];
/// All commands.
const ALL: &[&str] = &[];
/// Commands that start programs.
const START: &[&str] = &["run", "record"];
/// Commands that say how processes ended.
const ENDS: &[&str] = &["run", "list", "record", "snapshot", "stream", "cat", "top"];
/// Commands whose output may be long.
const LONG: &[&str] = &[
    "cat",
    "graph",
    "report",
    "events",
    "functions",
    "list",
    "verify",
    "doctor",
];

/// The variables that only tools read, each with the commands that use it.
pub(crate) const TOOLS: [(Variable, &[&str]); 5] = [
    (
        Variable {
            name: "RINGMARK_LIB",
            default: "`../lib/ringmark/`, `../lib/ringmark/release/` and the directory of `ringmark`",
            effect: "Path of `libringmark_functions.so`, or of its directory.",
        },
        &["run", "record", "trace", "doctor"],
    ),
    (
        Variable {
            name: "RINGMARK_ASK_ENDS",
            default: "on",
            effect: "`off`: Ringmark does not request from the kernel how processes of other parents \
                ended, as before Linux 6.15. Such an end then comes from the ring file, or is not known.",
        },
        ENDS,
    ),
    (
        Variable {
            name: "RINGMARK_PAGER, PAGER, LESS",
            default: "`less`, `FRX`",
            effect: "The program that long output to a terminal goes through; the first that is set counts. Empty or \
                `cat`: none, as with `--no-pager`. `LESS` has options of `less`.",
        },
        LONG,
    ),
    (
        Variable {
            name: "NO_COLOR, CLICOLOR_FORCE, TERM",
            default: "colour on terminals",
            effect: "No colour if `NO_COLOR` is set or `TERM` is `dumb`; colour also in pipes if `CLICOLOR_FORCE` is \
                set. `--color` goes first.",
        },
        ALL,
    ),
    (
        Variable {
            name: "JOURNAL_STREAM",
            default: "set by systemd",
            effect: "If it names standard error, notices begin with a priority, as with `--log journal`.",
        },
        &["collect"],
    ),
];

/// The variables that the manual page of a command shows; `None`: that of `ringmark`, which has all.
pub(crate) fn of_command(verb: Option<&str>) -> Vec<Variable> {
    let of_programs = VARIABLES.into_iter().filter_map(|variable| {
        let commands = match variable.name {
            "RINGMARK" | "RINGMARK_FILTER" | "RINGMARK_TAGS" => START,
            "RINGMARK_DIR" => LIVE,
            _ => return None,
        };
        Some((variable, commands))
    });
    let all = of_programs.chain(TOOLS);
    let is_used = |commands: &[&str], verb| commands == ALL || commands.contains(&verb);
    let used = all.filter(|(_, commands)| verb.is_none_or(|verb| is_used(commands, verb)));
    used.map(|(variable, _)| variable).collect()
}
