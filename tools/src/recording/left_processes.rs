//! Processes that a program leaves. They become children of this process, which may have others from
//! before: a shell that started one, and then became this process.

use std::fs;

use ringmark_console::{note, printable};

/// Processes that are named.
const NAMED_MAX: usize = 3;

/// Says which of these processes go on and are not recorded.
pub(super) fn tell(program: &str, pids: &[u32]) {
    let named: Vec<_> = pids.iter().take(NAMED_MAX).map(|pid| named(*pid)).collect();
    let which = match pids.len() {
        0 => "processes that it started go on".to_owned(),
        1..=NAMED_MAX => format!("{} goes on", named.join(", ")),
        more => format!("{} and {} more go on", named.join(", "), more - NAMED_MAX),
    };
    note(&printable(&format!(
        "{program} has ended; {which} without a session, and what comes there is NOT recorded"
    )));
}

/// The children of this process; none where the kernel does not tell.
pub(super) fn children() -> Vec<u32> {
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten();
    let lists = tasks
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("children")));
    let lists: Vec<_> = lists.flatten().collect();
    let pids = lists.iter().flat_map(|list| list.split_ascii_whitespace());
    pids.filter_map(|pid| pid.parse().ok()).collect()
}

fn named(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{}[{pid}]", name.trim_end())
}
