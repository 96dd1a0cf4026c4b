//! The tables of `profile`: functions that run and wait, waits, threads.

use std::sync::Arc;

use ringmark_console::units::{count, counted, duration};
use ringmark_console::{Table, printable};
use ringmark_profile::{Function, FunctionTimes, Missing, Profile, WITHOUT_FILE, WaitTimes};

use crate::options::perf::ALLOWED_BY;

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

/// Waits by what they are for and where, the longest first. What was not seen of them has a row, too.
pub(crate) fn waits(profile: &Profile) -> Table {
    let mut table = Table::new(&[">WAITED", ">TIMES", ">LONGEST", "FOR", "NAME"]);
    let mut rows: Vec<(u64, Vec<String>)> = profile
        .waits
        .iter()
        .map(|wait| (wait.ns, wait_row(wait)))
        .collect();
    if profile.unseen_ns > 0 {
        let purpose = "(not seen: over before a look)".to_owned();
        let cells = [time(profile.unseen_ns), "-".to_owned(), time(0), purpose];
        rows.push((profile.unseen_ns, [&cells[..], &[String::new()]].concat()));
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    rows.into_iter().for_each(|(_, cells)| table.row(cells));
    table
}

fn wait_row(wait: &WaitTimes) -> Vec<String> {
    vec![
        time(wait.ns),
        count(wait.times),
        time(wait.longest_ns),
        printable(&wait.wait.words()),
        place(wait),
    ]
}

/// The functions of the program that wait, the innermost first.
fn place(wait: &WaitTimes) -> String {
    let is_own = |function: &&Arc<Function>| {
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

/// Threads, those first that ran longest. Numbers of switches are there if the kernel told them of any.
pub(crate) fn threads(profile: &Profile) -> Table {
    let has_switches = profile.threads.iter().any(|of| of.switches.is_some());
    let of_switches = [">WAITS", ">LONGEST", ">PREEMPTED"];
    let of_switches = of_switches.into_iter().filter(|_| has_switches);
    let headings = [">RUNNING", ">READY", ">WAITING"].into_iter();
    let headings = headings.chain(of_switches).chain([">TID", "THREAD"]);
    let mut table = Table::new(&headings.collect::<Vec<_>>());
    for thread in &profile.threads {
        let times = thread.times;
        let mut cells = [times.running_ns, times.ready_ns, times.waiting_ns]
            .map(time)
            .to_vec();
        if has_switches {
            let switches = thread.switches.unwrap_or_default();
            cells.extend([
                count(switches.waits),
                time(switches.longest_wait_ns),
                count(switches.preemptions),
            ]);
        }
        cells.extend([thread.tid.to_string(), printable(&thread.name)]);
        table.row(cells);
    }
    table
}

/// What could not be had, and how to get it.
pub(crate) fn missing(profile: &Profile) -> Vec<String> {
    let missing = profile.missing.iter().map(said);
    let missing = missing.chain(cut_stacks(profile));
    missing.chain(made_code(profile)).collect()
}

/// The line about code that was made at run time, if it is more than a fifth of what ran.
fn made_code(profile: &Profile) -> Option<String> {
    let functions = profile.functions.iter();
    let made_ns: u64 = functions
        .filter(|times| times.function.name == WITHOUT_FILE)
        .map(|times| times.running_self_ns)
        .sum();
    (made_ns > profile.times().running_ns / 5).then(|| {
        format!(
            "{WITHOUT_FILE} is what a program makes at run time; it can write the names to /tmp/perf-PID.map: 'node --perf-basic-prof', 'python3 -X perf' from 3.12 on, 'jcmd PID Compiler.perfmap' from Java 17 on"
        )
    })
}

/// The line about stacks that end early, if they are more than a tenth.
fn cut_stacks(profile: &Profile) -> Option<String> {
    let cut = profile.samples.saturating_sub(profile.whole_samples);
    (cut > profile.samples / 10).then(|| {
        format!(
            "stacks of {} of {} end early: RUNNING of their callers is too small by that",
            count(cut),
            counted(profile.samples, "sample")
        )
    })
}

fn said(missing: &Missing) -> String {
    match missing {
        Missing::Running(error) => format!(
            "functions that run are not known: this user may not sample here ({error}); {ALLOWED_BY}"
        ),
        Missing::Kernel => "[kernel] is what the kernel ran for the program, without its functions: 'sudo setcap cap_perfmon+ep' on the ringmark binary shows who called it".to_owned(),
        Missing::ThreadsRunning(number) => format!(
            "functions of {} are not known: there are not enough descriptors ('ulimit -n')",
            counted(*number, "thread")
        ),
        Missing::BriefThreads(number) => format!(
            "{} came and went too fast for samples: what they ran, and what those ran that began them, is in no function, and may be in [kernel]",
            counted(*number, "thread")
        ),
        Missing::Threads(number) => format!(
            "{} in none of these times: there are not enough descriptors ('ulimit -n')",
            counted(*number, "thread")
        ),
        Missing::Samples(number) => format!(
            "{} had no room: so many samples are missing, and numbers of switches",
            counted(*number, "kernel record")
        ),
        Missing::Waits => "files, locks and stacks of waits are not known: they may be read by the user of the process, by root, or with cap_sys_ptrace; if kernel.yama.ptrace_scope is 1, by 'ringmark profile -- CMD', which starts the program".to_owned(),
        Missing::Stacks => "where threads wait is not known: the memory of the process may be read by its user, by root, or with cap_sys_ptrace".to_owned(),
        Missing::Code => "functions have no names: the mappings of the process may be read by its user, by root, or with cap_sys_ptrace".to_owned(),
    }
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
