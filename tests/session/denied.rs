//! Promise: whichever system call of a start, an attach, a thread's end, a request or the session's
//! end fails, once or from then on, the program goes on and prints nothing; tracing is off or
//! smaller, nothing leaks, nothing hangs, and a session that did not start leaves the reason.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use ringmark_tests::fixture::Fixture;
use ringmark_tests::{is_long, run};

const DENY: &str = ringmark_tests::program!("deny");
const PHASES: &str = ringmark_tests::program!("phases");
/// Time for one run of the program, which takes 20 ms.
const LIMIT_MS: &str = "20000";

const SESSIONS: [&str; 3] = [
    "mode=overwrite,page=4K,ring=64K",
    "mode=discard,control=off",
    "mode=discard,memfd=on,warm=1",
];

/// What a batch of runs found.
struct Batch {
    tried: u64,
    /// Numbers of the system calls that were denied.
    names: BTreeSet<u64>,
    hurt: Vec<String>,
}

/// Denies every `step`th call, from the `first` on.
fn deny(ringmark: &str, how: &str, error: i32, first: u64, step: u64) -> Batch {
    let fixture = Fixture::new("denied");
    let mut command = fixture.program(DENY, ringmark);
    command.args([how, &error.to_string(), &first.to_string()]);
    command.args([&step.to_string(), LIMIT_MS, PHASES]);
    let done = run(&mut command, Duration::from_secs(300)).unwrap();
    let said = done.expect_code(0).stdout_text();
    let mut hurt: Vec<_> = said.lines().map(str::to_owned).collect();
    let sums = hurt.pop().unwrap();
    let (numbers, names) = sums.split_once(" {").unwrap();
    let tried = numbers.split_once("tried=").unwrap().1.parse().unwrap();
    let names = names.trim_end_matches('}').split(", ");
    Batch {
        tried,
        names: names.filter_map(|name| name.parse().ok()).collect(),
        hurt,
    }
}

/// Where to begin among the first `step` calls.
fn seed(step: u64) -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.map_or(0, |since| u64::from(since.subsec_micros())) % step
}

#[test]
fn every_system_call_may_fail_at_every_place() {
    let errors: &[i32] = if is_long() {
        &[
            libc::EPERM,
            libc::ENOSYS,
            libc::ENOMEM,
            libc::EACCES,
            libc::EMFILE,
            libc::EINVAL,
            libc::EAGAIN,
        ]
    } else {
        &[libc::EPERM, libc::ENOSYS]
    };
    // CI: a third of the calls, another one each time.
    let step = if is_long() { 1 } else { 3 };
    let mut names = BTreeSet::new();
    let (mut tried, mut hurt) = (0, Vec::new());
    for ringmark in SESSIONS {
        for how in ["once", "always"] {
            for error in errors {
                let first = 1 + seed(step);
                let batch = deny(ringmark, how, *error, first, step);
                tried += batch.tried;
                names.extend(batch.names);
                let place = format!("RINGMARK={ringmark} deny {how} {error} {first} {step}");
                hurt.extend(batch.hurt.iter().map(|what| format!("{place}: {what}")));
            }
        }
    }
    println!(
        "{tried} runs, {} kinds of calls, {} hurt",
        names.len(),
        hurt.len()
    );
    assert!(tried > 300, "{tried}");
    assert!(hurt.is_empty(), "{hurt:#?}");
    // From the start, the attach, the refill, the requests and the end.
    for number in [
        libc::SYS_fallocate,
        libc::SYS_gettid,
        libc::SYS_madvise,
        libc::SYS_futex,
    ] {
        assert!(names.contains(&(number as u64)), "{number} was not denied");
    }
}

#[test]
fn a_helper_that_cannot_sleep_leaves() {
    // Every call of these kinds fails, as under a filter that came over the whole process.
    let batch = deny(SESSIONS[0], "always", libc::ENOSYS, 1, 1);
    let sleeps = libc::SYS_futex as u64;
    assert!(batch.names.contains(&sleeps), "{:?}", batch.names);
    assert!(batch.hurt.is_empty(), "{:#?}", batch.hurt);
}
