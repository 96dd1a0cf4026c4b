//! The guard in the traced program: also the helper thread, which blocks all other signals, survives
//! a cut; and a program that ignores SIGBUS stays guarded when another process sends it one.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, exit};

use ringmark::{Mode, Session, event};

const SIGBUS: i32 = 7;

/// How often threads other than this one went to sleep: the test's own waits for its end, the other one is the helper.
fn sleeps_of_others() -> u64 {
    let own = fs::read_link("/proc/thread-self").unwrap();
    let tasks = fs::read_dir("/proc/self/task").unwrap().flatten();
    let others = tasks.filter(|task| Some(task.file_name().as_os_str()) != own.file_name());
    let texts = others.filter_map(|task| fs::read_to_string(task.path().join("status")).ok());
    let count = |text: String| {
        let mut lines = text.lines();
        let count = lines.find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        count.trim().parse::<u64>().ok()
    };
    texts.filter_map(count).sum()
}

/// What the child does: its own file is cut as another process would cut it.
fn child(how: &str) -> ! {
    let builder = Session::builder().mode(Mode::Overwrite);
    let session = builder.guard(how != "bare").start().unwrap();
    event!("guard.before", number = 1_u64);
    if how == "ignores" {
        let own = std::process::id().to_string();
        // The shell has its own: the program is in a package that not every machine has.
        let sent = Command::new("sh")
            .args(["-c", "kill -BUS \"$0\"", &own])
            .status()
            .unwrap();
        assert!(sent.success());
    }
    let file = File::options().write(true).open(session.path()).unwrap();
    file.set_len(0).unwrap();
    // The helper thread looks at its mailbox ten times a second: it sleeps in between.
    let before = sleeps_of_others();
    while sleeps_of_others() < before + 3 {
        std::thread::yield_now();
    }
    for number in 0..10_000_u64 {
        event!("guard.after", number = number);
    }
    exit(0);
}

fn run(how: &str) -> ExitStatus {
    let dir = std::env::temp_dir().join(format!("ringmark-guard-{}-{how}", std::process::id()));
    // An ignored signal stays ignored in the program that the shell becomes.
    let trap = if how == "ignores" {
        "trap '' BUS; "
    } else {
        ""
    };
    let mut command = Command::new("sh");
    command.args([
        "-c",
        &format!("{trap}exec \"$0\" --exact cut_while_it_runs"),
    ]);
    command.arg(std::env::current_exe().unwrap());
    command.env("GUARD_CHILD", how).env("RINGMARK_DIR", &dir);
    let ended = command.output().unwrap().status;
    fs::remove_dir_all(&dir).unwrap();
    ended
}

#[test]
fn cut_while_it_runs() {
    if let Ok(how) = std::env::var("GUARD_CHILD") {
        child(&how);
    }
    assert_eq!(run("bare").signal(), Some(SIGBUS), "without the guard");
    for how in ["idle", "ignores"] {
        let ended = run(how);
        assert_eq!(ended.code(), Some(0), "{how}: {ended:?}");
    }
}
