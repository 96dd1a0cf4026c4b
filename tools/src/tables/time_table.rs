//! The tables of `profile`: functions that run and wait, waits, threads.

use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Table, printable};
use ringmark_profile::{Function, FunctionTimes, Missing, Profile, WaitTimes};

/// Rows of each table, where nothing else is asked for.
pub(crate) const ROWS: usize = 15;
/// Functions that a wait is shown in.
const FRAMES: usize = 3;
/// Files whose functions wait for others: the C library, what loads it, and the kernel's own code.
const LIBRARIES: [&str; 4] = ["libc.so", "libpthread.so", "ld-linux", "[vdso]"];

/// A time; `-`: none.
fn time(ns: u64) -> String {
    match ns {
        0 => "-".to_owned(),
        ns => duration(ns),
    }
}

/// The time of all threads together.
pub(crate) fn whole(profile: &Profile) -> String {
    let times = profile.times();
    format!(
        "{} of {}: {} running, {} ready to run, {} waiting",
        duration(profile.ns),
        counted(profile.threads.len() as u64, "thread"),
        duration(times.running_ns),
        duration(times.ready_ns),
        duration(times.waiting_ns)
    )
}

/// Functions: those first whose own code ran longest, then those in which threads waited longest.
pub(crate) fn functions(profile: &Profile) -> Table {
    let mut table = Table::new(&[">SELF", ">RUNNING", ">WAITING", "NAME", "MODULE"]);
    let mut rows: Vec<(u64, Vec<String>)> = profile
        .functions
        .iter()
        .map(|times| (rank(times), function_row(times)))
        .collect();
    if let Some(ns) = profile.kernel_ns.filter(|ns| *ns > 0) {
        let cells = [
            time(ns),
            time(ns),
            time(0),
            "[kernel]".to_owned(),
            String::new(),
        ];
        rows.push((ns, cells.to_vec()));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    rows.into_iter().for_each(|(_, cells)| table.row(cells));
    table
}

/// What a row is ordered by: own time, where there is none a little of what it waited.
fn rank(times: &FunctionTimes) -> u64 {
    times.running_self_ns.max(1)
}

fn function_row(times: &FunctionTimes) -> Vec<String> {
    vec![
        time(times.running_self_ns),
        time(times.running_ns),
        time(times.waiting_ns),
        printable(&times.function.name),
        printable(&times.function.module),
    ]
}

/// Waits by what they are for and where, the longest first.
pub(crate) fn waits(profile: &Profile) -> Table {
    let mut table = Table::new(&[">WAITED", ">TIMES", ">LONGEST", "FOR", "NAME"]);
    for wait in &profile.waits {
        table.row(vec![
            time(wait.ns),
            count(wait.times),
            time(wait.longest_ns),
            purpose(wait),
            place(wait),
        ]);
    }
    table
}

/// `read pipe:[4711]`; a mutex says more than its system call.
fn purpose(wait: &WaitTimes) -> String {
    let (call, object) = (&wait.wait.call, &wait.wait.object);
    let text = match object.is_empty() {
        true => call.clone(),
        false if object.starts_with("mutex") => object.clone(),
        false => format!("{call} {object}"),
    };
    printable(&text)
}

/// The functions of the program that wait, the innermost first.
fn place(wait: &WaitTimes) -> String {
    let is_own = |function: &&Function| {
        !LIBRARIES
            .iter()
            .any(|library| function.module.starts_with(library))
    };
    let own: Vec<_> = wait.stack.iter().filter(is_own).collect();
    let shown: Vec<_> = match own.is_empty() {
        true => wait.stack.iter().collect(),
        false => own,
    };
    let names: Vec<_> = shown
        .iter()
        .take(FRAMES)
        .map(|function| printable(&function.name))
        .collect();
    names.join(" < ")
}

/// Threads, those first that ran longest.
pub(crate) fn threads(profile: &Profile) -> Table {
    let mut table = Table::new(&[">RUNNING", ">READY", ">WAITING", ">TID", "THREAD"]);
    for thread in &profile.threads {
        table.row(vec![
            time(thread.times.running_ns),
            time(thread.times.ready_ns),
            time(thread.times.waiting_ns),
            thread.tid.to_string(),
            printable(&thread.name),
        ]);
    }
    table
}

/// What could not be had, and how to get it.
pub(crate) fn missing(profile: &Profile) -> Vec<String> {
    profile.missing.iter().map(|missing| match missing {
        Missing::Running(error) => format!(
            "functions that run are not known: this user may not sample on this host ({error}); 'sudo setcap cap_perfmon+ep' on the ringmark binary allows it, or 'sudo sysctl kernel.perf_event_paranoid=2'"
        ),
        Missing::Kernel => "[kernel] is what the kernel ran for the program, without its functions: 'sudo setcap cap_perfmon+ep' on the ringmark binary shows who called it".to_owned(),
        Missing::Threads(number) => format!(
            "{} without samples: there are not enough descriptors ('ulimit -n')",
            counted(*number, "thread")
        ),
        Missing::Samples(number) => format!("{} had no room", counted(*number, "sample")),
        Missing::Waits => "what threads wait for is not known: it may be read by the user of the process who started it, by root, or with cap_sys_ptrace".to_owned(),
        Missing::Stacks => "where threads wait is not known: the memory of the process may be read by its user, by root, or with cap_sys_ptrace".to_owned(),
        Missing::Code => "functions have no names: the mappings of the process may be read by its user, by root, or with cap_sys_ptrace".to_owned(),
    }).collect()
}

/// The command that shows each call of the function that runs most; `None`: none can be traced.
pub(crate) fn next_step(profile: &Profile, pid: u32) -> Option<String> {
    let can_be_traced = |times: &&FunctionTimes| times.function.has_sites && times.running_ns > 0;
    let found = profile.functions.iter().find(can_be_traced)?;
    let name = ringmark_console::shell::quoted(std::path::Path::new(&found.function.name));
    Some(format!(
        "each call of it: ringmark record -p {pid} --kind graph --filter {name} --for 1s"
    ))
}
