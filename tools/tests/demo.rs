//! `ringmark demo`: its counts are those of `find` and `wc`, its proof is right, and what it tells
//! people to try works.

use crate::common;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{LIMIT, Stage};
use ringmark_tests::{Finished, Running, TempDir, require_tools, run, wait_until, workspace_root};
use rustix::process::{Pid, Signal, kill_process_group};

/// What is skipped, in the words of `find`.
const PRUNE: &str = r"-mindepth 1 \( -name .git -o -name target \) -prune -o";
/// A user without rights of its own, by number.
const UNPRIVILEGED: &str = "65534";

fn write(path: &Path, content: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file in a directory")).unwrap();
    fs::write(path, content).unwrap();
}

/// Hidden files, links, what is skipped, files that end without a line feed, and many more.
fn plain_tree(root: &Path) {
    for n in 0..300_usize {
        let content = "a line\n".repeat(n * 7);
        write(
            &root.join(format!("d{}/e{}/{n}.txt", n % 7, n % 3)),
            content.as_bytes(),
        );
    }
    write(
        &root.join(".hidden/.file"),
        b"hidden\nno line feed at the end",
    );
    write(&root.join("empty"), b"");
    write(&root.join("binary"), &[10, 0, 255, 10].repeat(100_000));
    write(&root.join(".git/objects/x"), b"not\ncounted\n");
    write(&root.join("d1/target/debug/x"), b"not\ncounted\n");
    write(&root.join("targets/x"), b"counted\n");
    symlink("../empty", root.join("d1/link")).unwrap();
    symlink("..", root.join("d1/circle")).unwrap();
    symlink("nowhere", root.join("dangling")).unwrap();
    let fifo = Command::new("mkfifo")
        .arg(root.join("fifo"))
        .status()
        .unwrap();
    assert!(fifo.success());
}

/// Names that are no text, that would drive a terminal, or that end a line; and what may not be
/// read.
fn odd_tree(root: &Path) {
    let names: [&[u8]; 6] = [
        b"latin-\xe4\xf6.txt",
        b"\xff\xfe",
        b"esc-\x1b[31mred\x1b]0;title\x07",
        b"line\nfeed\r\t",
        b" blanks  and 'quotes\" -n",
        "\u{202e}reversed".as_bytes(),
    ];
    for (n, name) in names.into_iter().enumerate() {
        // The slowest ones are shown: let these be them.
        write(
            &root.join(OsStr::from_bytes(name)),
            "x\n".repeat(200_000 + n).as_bytes(),
        );
    }
    write(&root.join("secret/inside"), b"cannot\nbe\nread\n");
    write(&root.join("private"), b"cannot\nbe\nread\n");
    write(&root.join("open"), b"can be read\n");
    for name in ["secret", "private"] {
        fs::set_permissions(root.join(name), Permissions::from_mode(0o000)).unwrap();
    }
}

/// What `sh -c` prints; `prefix` may run it as another user.
fn shell(prefix: &[&str], script: &str, dir: &Path) -> Vec<u8> {
    let mut command = Command::new("env");
    command
        .args(["LC_ALL=C"])
        .args(prefix)
        .args(["sh", "-c", script]);
    command.current_dir(dir).output().unwrap().stdout
}

fn shell_number(prefix: &[&str], script: &str, dir: &Path) -> u64 {
    let text = String::from_utf8(shell(prefix, script, dir)).unwrap();
    text.trim().parse().unwrap()
}

/// Files, bytes, lines, directories, as `find` and `wc` count them.
fn expected(prefix: &[&str], dir: &Path) -> BTreeMap<&'static str, u64> {
    let number = |script: &str| shell_number(prefix, script, dir);
    let all = format!(r"find . {PRUNE} -type f -print0 2>/dev/null");
    let content = format!("{all} | xargs -0 cat -- 2>/dev/null");
    let directories = format!(r"find . {PRUNE} -type d -print0 2>/dev/null | tr -cd '\0' | wc -c");
    BTreeMap::from([
        ("files", number(&format!(r"{all} | tr -cd '\0' | wc -c"))),
        ("bytes", number(&format!("{content} | wc -c"))),
        ("lines", number(&format!("{content} | wc -l"))),
        // `-mindepth` leaves out the directory itself.
        ("directories", number(&directories) + 1),
    ])
}

/// The numbers of the summary.
fn summary(demo: &Finished) -> BTreeMap<String, u64> {
    let text = demo.stdout_text();
    let number = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let name = words.next()?.to_owned();
        Some((name, words.next()?.replace(',', "").parse().ok()?))
    };
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("Indexing "))
        .take_while(|line| !line.is_empty());
    lines.filter_map(number).collect()
}

#[track_caller]
fn check_summary(demo: &Finished, expected: &BTreeMap<&'static str, u64>) {
    let found = summary(demo);
    for (name, number) in expected {
        assert_eq!(
            found.get(*name),
            Some(number),
            "{name}\n{}",
            demo.stdout_text()
        );
    }
    assert_eq!(found.get("lost"), Some(&0));
    let text = demo.stdout_text();
    let right = text
        .lines()
        .filter(|line| line.starts_with("  right "))
        .count();
    assert_eq!(right, 2, "{text}");
    assert!(
        text.starts_with("A traced program, killed with kill -9\n"),
        "{text}"
    );
    // Tracing that seems to make a program faster is noise.
    assert!(!text.contains("   -"), "{text}");
    assert!(!text.contains("WRONG"), "{text}");
}

/// What a terminal of 80 columns shows as it is, but for the commands, which hold paths.
#[track_caller]
fn check_shape(demo: &Finished) {
    let text = String::from_utf8(demo.stdout.clone()).expect("only text");
    let shown = text.split("Try next").next().unwrap_or_default();
    for line in shown.lines() {
        assert!(line.chars().count() <= 80, "{line}");
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(!line.contains('\u{202e}'), "{line:?}");
    }
}

#[test]
fn a_tree_and_the_commands_to_try_next() {
    let stage = Stage::new("demo-plain");
    let tree = stage.dir.join("tree");
    plain_tree(&tree);
    let expected = expected(&[], &tree);
    let mut command = stage.ringmark(&["demo"]);
    let demo = run(command.current_dir(&tree), LIMIT)
        .unwrap()
        .expect_code(0);
    check_summary(&demo, &expected);
    check_shape(&demo);
    assert_eq!(demo.stderr_text(), "");
    let sessions = fs::read_dir(stage.dir.join("sessions")).unwrap();
    let left: Vec<_> = sessions.flatten().map(|e| e.file_name()).collect();
    assert!(
        left.iter().all(|n| !n.as_bytes().ends_with(b".ring")),
        "{left:?}"
    );
    let text = demo.stdout_text();
    let commands: Vec<_> = text
        .lines()
        .skip_while(|l| *l != "Try next")
        .skip(1)
        .collect();
    assert_eq!(commands.len(), 3, "{text}");
    let tried: Vec<_> = commands
        .iter()
        .map(|line| try_command(&stage, &tree, line))
        .collect();
    assert_eq!(tried[0].lines().count(), 20, "{}", tried[0]);
    assert!(tried[1].contains("index.file"), "{}", tried[1]);
    let again = stage
        .run(&["verify", "--json", "tree/ringmark.rmk"])
        .expect_code(0);
    let found: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(found["events"].as_u64() > Some(600), "{found}");
}

fn try_command(stage: &Stage, dir: &Path, line: &str) -> String {
    let mut command = stage.command("sh");
    command.args(["-c", line]).current_dir(dir);
    run(&mut command, LIMIT)
        .unwrap()
        .expect_code(0)
        .stdout_text()
}

#[test]
fn odd_names_and_what_may_not_be_read() {
    if !require_tools(&["setpriv", "find", "xargs"]) {
        return;
    }
    let stage = Stage::new("demo-odd");
    let tree = stage.dir.join("tree");
    odd_tree(&tree);
    // Root may read everything: another user does it then, with a copy that this user may execute.
    let place = TempDir::new_in(&std::env::temp_dir(), "demo-odd").unwrap();
    let exe = place.join("ringmark");
    fs::copy(env!("CARGO_BIN_EXE_ringmark"), &exe).unwrap();
    for dir in [&*stage.dir, &*place] {
        fs::set_permissions(dir, Permissions::from_mode(0o777)).unwrap();
    }
    let is_root = rustix::process::geteuid().is_root();
    let prefix: &[&str] = if is_root {
        &[
            "setpriv",
            "--reuid",
            UNPRIVILEGED,
            "--regid",
            UNPRIVILEGED,
            "--clear-groups",
        ]
    } else {
        &[]
    };
    let expected = expected(prefix, &tree);
    assert_eq!((expected["files"], expected["directories"]), (8, 2));
    let mut command = stage.command("env");
    command.args(prefix).arg(&exe).args(["demo", "tree"]);
    let demo = run(&mut command, LIMIT).unwrap().expect_code(0);
    for name in ["secret", "private"] {
        fs::set_permissions(tree.join(name), Permissions::from_mode(0o755)).unwrap();
    }
    check_summary(&demo, &expected);
    check_shape(&demo);
    let text = demo.stdout_text();
    for part in [
        "2 files or directories could not be read",
        "secret: Permission denied",
        "private: Permission denied",
        r"latin-\xe4\xf6.txt",
        r"\xff\xfe",
        r"esc-\x1b[31mred\x1b]0;title\x07",
        r"line\nfeed\r\t",
        " blanks  and 'quotes\" -n",
        r"\xe2\x80\xaereversed",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

#[test]
fn a_real_tree_twice() {
    let stage = Stage::new("demo-real");
    let tree = stage.dir.join("format-spec");
    let copied = Command::new("cp")
        .arg("-r")
        .arg(workspace_root().join("format-spec"))
        .arg(&*stage.dir)
        .status();
    assert!(copied.unwrap().success());
    let expected = expected(&[], &tree);
    for _ in 0..2 {
        let demo = stage
            .run(&["demo", "format-spec", "-o", "my demo.rmk"])
            .expect_code(0);
        check_summary(&demo, &expected);
        assert!(demo.stdout_text().contains("report 'my demo.rmk'"));
    }
    let files = [
        PathBuf::from("my demo.rmk"),
        PathBuf::from("my demo.rmk.old"),
    ];
    for file in files {
        let file = file.to_str().unwrap();
        let _ = stage.run(&["verify", file]).expect_code(0);
    }
}

#[test]
fn an_empty_directory() {
    let stage = Stage::new("demo-empty");
    fs::create_dir(stage.dir.join("empty")).unwrap();
    let demo = stage.run(&["demo", "empty"]).expect_code(0);
    check_summary(
        &demo,
        &BTreeMap::from([("files", 0), ("directories", 1), ("bytes", 0)]),
    );
}

#[test]
fn other_file_systems_below_a_directory_are_left_out() {
    if !require_tools(&["unshare", "mount"]) {
        return;
    }
    let stage = Stage::new("demo-mounts");
    write(&stage.dir.join("tree/here"), b"a line\n");
    fs::create_dir(stage.dir.join("tree/proc")).unwrap();
    let demo = stage.ringmark(&["demo", "tree"]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-euc"]);
    command.args(["mount --bind /proc tree/proc; exec \"$@\"", "sh"]);
    command.arg(demo.get_program()).args(demo.get_args());
    command.envs(
        demo.get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    command.current_dir(&*stage.dir);
    let demo = run(&mut command, LIMIT).unwrap().expect_code(0);
    let expected = BTreeMap::from([("files", 1), ("directories", 1), ("bytes", 7)]);
    check_summary(&demo, &expected);
}

#[test]
fn in_an_empty_directory_another_one_is_indexed() {
    let stage = Stage::new("demo-elsewhere");
    let empty = stage.dir.join("empty");
    fs::create_dir(&empty).unwrap();
    let mut command = stage.ringmark(&["demo"]);
    let demo = run(command.current_dir(&empty), LIMIT)
        .unwrap()
        .expect_code(0);
    let text = demo.stdout_text();
    assert!(
        text.contains("The current directory has no files"),
        "{text}"
    );
    assert!(summary(&demo)["files"] > 0, "{text}");
}

#[test]
fn where_no_session_can_be_the_temporary_directory_helps() {
    let stage = Stage::new("demo-off");
    write(&stage.dir.join("tree/file"), b"1\n");
    let demo = |temporary: &str| {
        let mut command = stage.ringmark(&["demo", "tree"]);
        command.env("RINGMARK_DIR", "/proc/no/such");
        run(command.env("TMPDIR", temporary), LIMIT).unwrap()
    };
    let temporary = stage.dir.join("tmp");
    fs::create_dir(&temporary).unwrap();
    let found = demo(temporary.to_str().unwrap()).expect_code(0);
    check_summary(&found, &BTreeMap::from([("files", 1), ("lines", 1)]));
    assert_eq!(
        fs::read_dir(&temporary).unwrap().count(),
        0,
        "something is left"
    );
    let found = demo("/proc/no/such/either");
    assert!(found.code() == 4, "{}", found.stderr_text());
    assert!(
        found.stderr_text().starts_with("ringmark: "),
        "{}",
        found.stderr_text()
    );
}

#[test]
fn ctrl_c_leaves_a_dump_and_nothing_else() {
    let stage = Stage::new("demo-ctrl-c");
    // Nothing is stored of it, and reading it takes minutes.
    let endless = fs::File::create(stage.dir.join("endless")).unwrap();
    endless.set_len(1 << 40).unwrap();
    let demo = Running::start(&mut stage.ringmark(&["demo"])).unwrap();
    let sessions = || fs::read_dir(stage.dir.join("sessions")).ok();
    let _ = wait_until(LIMIT, "a session", || sessions()?.next());
    wait_until(LIMIT, "a dump", || {
        fs::metadata(stage.dir.join("demo.rmk"))
            .ok()
            .filter(|m| m.len() > 0)
    });
    let group = Pid::from_raw(demo.id() as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let demo = demo.finish(LIMIT).expect_code(130);
    assert!(
        demo.stderr_text().contains("SIGINT"),
        "{}",
        demo.stderr_text()
    );
    let verified = stage.run(&["verify", "demo.rmk"]).expect_code(0);
    assert!(verified.stdout_text().contains("damaged: 0"));
    assert_eq!(sessions().unwrap().count(), 0);
}

#[test]
fn bad_command_lines() {
    let stage = Stage::new("demo-bad");
    write(&stage.dir.join("file"), b"");
    let said = |arguments: &[&str], code| {
        let done = stage.run(arguments).expect_code(code);
        assert_eq!(done.stdout_text(), "");
        done.stderr_text()
    };
    assert!(said(&["demo", "nowhere"], 3).contains("nowhere: cannot be indexed: No such file"));
    assert!(said(&["demo", "file"], 3).contains("file: is no directory"));
    assert!(said(&["demo", "-o", "-"], 2).contains("expected a file"));
    assert!(said(&["demo", "--depth"], 2).contains("--depth"));
    assert!(!stage.dir.join("demo.rmk").exists());
    // The traced side is no command for people.
    let help = stage.run(&["--help"]).expect_code(0).stdout_text();
    assert!(
        help.contains("demo") && !help.contains("demo-job"),
        "{help}"
    );
}
