//! The commands of `ringmark`, as its help lists them.

use std::time::Duration;

use crate::{ringmark, run};

/// Sections of help that list no commands.
const OTHERS: [&str; 4] = ["Arguments:", "Options:", "Example:", "Examples:"];
const LIMIT: Duration = Duration::from_secs(30);

/// All commands with those inside them, such as `trace start`. `help` is none.
///
/// # Panics
/// Help cannot be had.
#[must_use]
pub fn all() -> Vec<String> {
    let mut found = inside("");
    let nested: Vec<_> = found.iter().flat_map(|outer| inside(outer)).collect();
    found.extend(nested);
    found
}

/// The commands that the help of a command lists.
fn inside(outer: &str) -> Vec<String> {
    let mut command = ringmark();
    command.args(outer.split_whitespace()).arg("--help");
    let help = run(&mut command, LIMIT).expect("ringmark starts");
    let help = help.expect_code(0).stdout_text();
    let mut lists_commands = false;
    let mut found = Vec::new();
    for line in help.lines() {
        if line.ends_with(':') && !line.starts_with(' ') {
            lists_commands = !OTHERS.contains(&line);
        }
        let named = line.strip_prefix("  ").filter(|_| lists_commands);
        let name = named.and_then(|named| named.split("  ").next());
        let is_name = |name: &&str| name.starts_with(|c: char| c.is_ascii_lowercase());
        found.extend(
            name.filter(is_name)
                .filter(|name| *name != "help")
                .map(|name| format!("{outer} {name}").trim().to_owned()),
        );
    }
    found
}
