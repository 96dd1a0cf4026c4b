//! Promise: every call that was recorded is counted where a person sees it, with or without an end;
//! what is not known is shown as such, and messages about functions say what is so.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{
    LIMIT, SITES, compile, library, ringmark, start, tool, wait_for_tracers,
};
use ringmark_tests::{Finished, Running, log_skip, require_tools, run};
use serde_json::Value;

/// Runs a program under a tracer; its output says what it counted itself.
fn traced(fixture: &Fixture, tracer: &str, program: &Path, dump: &str) -> Finished {
    let mut command = tool(fixture);
    command.args(["run", "--kind", tracer, "--all-functions", "-o"]);
    command.arg(fixture.path(dump)).arg("--").arg(program);
    run(&mut command, LIMIT).expect("it starts")
}

/// `NAME COUNT` lines.
fn own(finished: &Finished) -> BTreeMap<String, u64> {
    let text = finished.stdout_text();
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .map(|(name, calls)| (name.to_owned(), calls.parse().expect("a number")))
        .collect()
}

/// The functions that `report --json` names.
fn functions(fixture: &Fixture, dump: &str) -> BTreeMap<String, Value> {
    let text = ringmark(fixture, "report --json", &[&fixture.path(dump)]).stdout_text();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let functions = lines.filter(|object| object["of"] == "function" || object["of"] == "profile");
    functions
        .map(|f| (f["name"].as_str().expect("a name").to_owned(), f))
        .collect()
}

fn number(f: &Value, key: &str) -> u64 {
    f[key].as_u64().unwrap_or_else(|| panic!("{key} of {f}"))
}

/// Cells of the row of a function.
fn row<'a>(table: &'a str, function: &str) -> Vec<&'a str> {
    let cells = |line: &'a str| line.split_whitespace().collect::<Vec<_>>();
    let mut rows = table.lines().map(cells);
    rows.find(|cells| cells.contains(&function))
        .unwrap_or_else(|| panic!("no {function} in {table}"))
}

/// What is called without an end by the program, where ends are wanted: only depth keeps those of
/// `deep` from being seen.
const ENDLESS: [&str; 1] = ["last"];

#[test]
fn calls_of_named_functions_stay_at_their_depth() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-named");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let _ = traced(&fixture, "graph", &program, "named.rmk").expect_code(0);
    let dump = fixture.path("named.rmk");
    let all = functions(&fixture, "named.rmk");
    let graph = |words: &str| ringmark(&fixture, words, &[&dump]).expect_code(0);
    let calls = |words: &str| -> Vec<Value> {
        let text = graph(words).stdout_text();
        let lines = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        lines.collect()
    };
    let whole = calls("graph --json");
    for name in all.keys() {
        let named = calls(&format!("graph --json --only --name {name}"));
        let expected: Vec<_> = whole.iter().filter(|call| call["name"] == **name).collect();
        assert!(!expected.is_empty(), "{name}");
        assert_eq!(named.iter().collect::<Vec<_>>(), expected, "{name}");
    }
    let nothing = graph("graph --name nosuch*");
    assert!(nothing.stderr_text().contains("matches nothing shown"));
    assert_eq!(nothing.stdout_text().lines().count(), 3, "{nothing:?}");
}

/// How often each function is called in lines of `graph --json`.
fn by_name(fixture: &Fixture, words: &str, dump: &Path) -> BTreeMap<String, usize> {
    let text = ringmark(fixture, words, &[dump])
        .expect_code(0)
        .stdout_text();
    let mut counts = BTreeMap::new();
    for line in text.lines() {
        let call: Value = serde_json::from_str(line).expect("JSON");
        let name = call["name"].as_str().expect("a name").to_owned();
        *counts.entry(name).or_default() += 1;
    }
    counts
}

fn counts(of: &[(&str, usize)]) -> BTreeMap<String, usize> {
    let counts = of.iter().map(|(name, calls)| ((*name).to_owned(), *calls));
    counts.collect()
}

#[test]
fn chosen_calls_have_what_is_inside_them() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-chosen");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let dump = fixture.path("chosen.rmk");
    let mut command = tool(&fixture);
    command.args(["run", "--kind", "graph", "--all-functions"]);
    command.args(["--args", "1", "--result", "-o"]);
    command.arg(&dump).arg("--").arg(program).arg("100");
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let found = |words: &str| by_name(&fixture, &format!("graph --json {words}"), &dump);
    let middles = counts(&[("middle", 100), ("leaf", 200)]);
    assert_eq!(found("--name middle"), middles);
    assert_eq!(found("--name middle --only"), counts(&[("middle", 100)]));
    // The rounds are numbered, and each passes its number on.
    let one = [("outer", 1), ("middle", 1), ("leaf", 2), ("other", 1)];
    assert_eq!(found("--name outer --where arg1=7"), counts(&one));
    assert_eq!(
        found("--where arg1=7 --where took>=0 --name other"),
        counts(&[("other", 1)])
    );
    assert_eq!(found("--where took>100s"), counts(&[]));
    assert_eq!(found("-n 5").values().sum::<usize>(), 5);
    let text = |words: &str| ringmark(&fixture, words, &[&dump]).expect_code(0);
    let lines_of = |words: &str| -> Vec<String> {
        let text = text(words).stdout_text();
        let lines = text.lines().skip_while(|line| !line.starts_with("---"));
        let what = |line: &str| line.get(14..).unwrap_or(line).trim().to_owned();
        lines.skip(1).map(what).collect()
    };
    let first = lines_of("graph --name middle -n 4");
    let expected = [
        "middle(0x0) {",
        "leaf(0x0) = 0x0;",
        "leaf(0x1) = 0x2;",
        "} = 0x3",
    ];
    assert_eq!(first[..4], expected, "{first:?}");
    assert!(first[4].ends_with("(-n)"), "{first:?}");
    let typed = lines_of("graph --name outer --where arg1=7 --types *@arg1/i32,result/i32");
    let expected = [
        "outer(7) {",
        "middle(7) {",
        "leaf(7) = 14;",
        "leaf(8) = 16;",
        "} = 31",
        "other(7) = 10;",
        "} = 42",
    ];
    assert_eq!(typed, expected);
    let none = text("graph --where took>100s");
    assert!(
        none.stderr_text()
            .contains("--where took>100s holds for none of the calls")
    );
}

#[test]
fn calls_without_an_end_are_counted_and_shown() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-no-end");
    let program = compile(&fixture, "no_end.c", "no_end", &format!("{SITES} -pthread"));
    for tracer in ["graph", "function", "profile"] {
        let finished = traced(&fixture, tracer, &program, "ends.rmk").expect_code(0);
        let (own, found) = (own(&finished), functions(&fixture, "ends.rmk"));
        assert_eq!(own.len(), 6, "{finished:?}");
        for (name, calls) in &own {
            let f = &found[name];
            assert_eq!(number(f, "count"), *calls, "{tracer} {name}");
            let expected = match (tracer, name.as_str()) {
                ("function", _) => *calls,
                (_, "deep") => number(f, "no_end"),
                (_, name) if ENDLESS.contains(&name) => *calls,
                _ => 0,
            };
            assert_eq!(number(f, "no_end"), expected, "{tracer} {name}");
            let is_timed = expected < *calls;
            assert_eq!(f["max_ns"].is_u64(), is_timed, "{tracer} {f}");
            assert_eq!(f["total_ns"].is_null(), !is_timed, "{tracer} {f}");
        }
        let too_deep = number(&found["deep"], "no_end");
        if tracer != "function" {
            assert_eq!(too_deep, 150_001 - 131_071, "{tracer}");
        }
        expect_tables(&fixture, tracer, &finished);
    }
}

/// The table that `run` and `report` print.
fn expect_tables(fixture: &Fixture, tracer: &str, finished: &Finished) {
    let report = ringmark(fixture, "report", &[&fixture.path("ends.rmk")]);
    for table in [finished.stderr_text(), report.expect_code(0).stdout_text()] {
        assert!(!table.contains("no call of a function"), "{table}");
        assert!(table.contains("NO END"), "{table}");
        let last = row(&table, "last");
        assert_eq!(
            last[..8],
            ["1", "1", "-", "-", "-", "-", "-", "-"],
            "{table}"
        );
        let expected = match tracer {
            "function" => "kind 'function' records no ends",
            _ => {
                "calls have no end: still open, deeper than 131,071, in a dropped coroutine, or of a thread without /proc or descriptors"
            }
        };
        assert!(table.contains(expected), "{tracer}: {table}");
    }
}

#[test]
fn where_all_calls_have_ends_nothing_is_said_of_them() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-all-ends");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    for tracer in ["graph", "profile"] {
        let finished = traced(&fixture, tracer, &program, "ends.rmk").expect_code(0);
        let table = finished.stderr_text();
        assert!(
            !table.contains("NO END") && !table.contains("no end"),
            "{table}"
        );
        assert!(row(&table, "main")[0] == "1", "{table}");
    }
}

/// What `trace` and `functions` say of a process.
fn ask(fixture: &Fixture, words: &str, code: i32, said: &str, unsaid: &str) -> String {
    let finished = ringmark(fixture, words, &[]).expect_code(code);
    let text = finished.stderr_text() + &finished.stdout_text();
    assert!(text.contains(said), "{words}: no {said:?} in {text}");
    assert!(
        unsaid.is_empty() || !text.contains(unsaid),
        "{words}: {text}"
    );
    text
}

#[test]
fn a_filter_that_matches_nothing_changes_nothing() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-filter-none");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let running = start(&fixture, &program);
    let pid = running.id();
    let _ = ask(
        &fixture,
        &format!("trace start -F leaf --detach -p {pid}"),
        0,
        "1 enabled",
        "",
    );
    let refused = "matches no function; the filter stays \"leaf\"";
    for words in ["filter nosuch*", "notrace *"] {
        let words = format!("trace {words} -p {pid}");
        let _ = ask(&fixture, &words, 4, refused, "");
        let _ = ask(
            &fixture,
            &format!("trace status -p {pid}"),
            0,
            "1 of 5 patch sites enabled",
            "",
        );
    }
    let words = format!("functions -p {pid} nosuch*");
    let said = "5 functions can be traced, \"nosuch*\" matches none of them";
    let _ = ask(&fixture, &words, 4, said, "");
    // Without functions of its own a start means the filter that is there.
    let _ = ask(&fixture, &format!("trace stop -p {pid}"), 0, "", "");
    let _ = ask(
        &fixture,
        &format!("trace start --detach -p {pid}"),
        0,
        "1 enabled",
        "",
    );
}

#[test]
fn the_filter_in_force_is_named() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-filter-named");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let mut command = fixture.command(&program);
    command
        .env("RINGMARK", "mode=overwrite,ring=1M")
        .args(["-1", "200"]);
    command.env("LD_PRELOAD", library());
    command.env("RINGMARK_TRACE", "tracer=graph;filter=later*");
    let running = Running::start(&mut command).expect("it starts");
    wait_for_tracers(&fixture, "later*");
    let words = format!("trace start --detach -p {}", running.id());
    let said = "the filter of the default tracer, \"later*\", matches no function";
    let _ = ask(&fixture, &words, 4, said, "\"\"");
}

#[test]
fn functions_without_symbols_have_names_that_stay() {
    if !require_tools(&["gcc", "objcopy"]) {
        return;
    }
    let fixture = Fixture::new("fn-stripped");
    let whole = with_build_id(&fixture);
    let stripped = strip(&fixture, &["--strip-all"], "stripped");
    let listed = ringmark(&fixture, "functions", &[&stripped])
        .expect_code(0)
        .stdout_text();
    let sizes = |text: &str| {
        let cells = text.lines().map(|line| line.split_whitespace().nth(1));
        cells
            .map(|size| size.expect("a size").parse::<u64>().expect("a number"))
            .collect::<Vec<_>>()
    };
    let of_whole = ringmark(&fixture, "functions", &[&whole])
        .expect_code(0)
        .stdout_text();
    assert_eq!(sizes(&listed), sizes(&of_whole), "{listed}");
    let names: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert!(
        names.len() == 5 && names.iter().all(|name| name.starts_with("stripped+0x")),
        "{listed}"
    );
    // The same in each run, and in graph and profile; each is its own pattern.
    for tracer in ["graph", "graph", "profile"] {
        let _ = traced(&fixture, tracer, &stripped, "stripped.rmk").expect_code(0);
        let found = functions(&fixture, "stripped.rmk");
        let mut expected: Vec<_> = names.clone();
        expected.sort_unstable();
        assert_eq!(found.keys().collect::<Vec<_>>(), expected, "{tracer}");
    }
    for name in &names {
        let mut command = tool(&fixture);
        command.args(["run", "--kind", "graph", "-F", name, "-o"]);
        command
            .arg(fixture.path("one.rmk"))
            .arg("--")
            .arg(&stripped);
        let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        let found = functions(&fixture, "one.rmk");
        assert_eq!(found.keys().collect::<Vec<_>>(), [name], "{name}");
    }
}

/// A program with a build id: file `whole`.
fn with_build_id(fixture: &Fixture) -> PathBuf {
    let flags = format!("{SITES} -Wl,--build-id");
    compile(fixture, "nested.c", "whole", &flags)
}

/// File `whole` as `objcopy` leaves it.
fn strip(fixture: &Fixture, arguments: &[&str], to: &str) -> PathBuf {
    let mut command = std::process::Command::new("objcopy");
    command.args(arguments);
    command.args([fixture.path("whole"), fixture.path(to)]);
    let _ = run(&mut command, LIMIT).expect("objcopy").expect_code(0);
    fixture.path(to)
}

#[test]
fn symbols_in_a_file_of_their_own_give_a_program_its_names_back() {
    if !require_tools(&["gcc", "objcopy"]) {
        return;
    }
    let fixture = Fixture::new("fn-linked");
    let _ = with_build_id(&fixture);
    let _ = strip(&fixture, &["--only-keep-debug"], "linked.debug");
    let link = format!(
        "--add-gnu-debuglink={}",
        fixture.path("linked.debug").display()
    );
    let linked = strip(&fixture, &["--strip-all", &link], "linked");
    let _ = traced(&fixture, "graph", &linked, "linked.rmk").expect_code(0);
    let found = functions(&fixture, "linked.rmk");
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        ["leaf", "main", "middle", "other", "outer"]
    );
}

/// Distributions install debug files by build id. The directory is one of this test's own mount
/// namespace.
#[test]
fn symbols_that_the_distribution_installs_give_a_program_its_names_back() {
    const INSTALLED: &str = "/usr/lib/debug";
    if !require_tools(&["gcc", "objcopy", "unshare", "mount"]) {
        return;
    }
    if !Path::new(INSTALLED).is_dir() {
        return log_skip("debug files: there is no /usr/lib/debug to mount over");
    }
    let fixture = Fixture::new("fn-installed");
    let whole = with_build_id(&fixture);
    let _ = strip(&fixture, &["--only-keep-debug"], "whole.debug");
    let stripped = strip(&fixture, &["--strip-all"], "stripped");
    let script = r#"
id=$(file -b "$1" | sed -n 's/.*BuildID\[sha1\]=\([0-9a-f]*\).*/\1/p')
mount -t tmpfs tmpfs /usr/lib/debug
mkdir -p "/usr/lib/debug/.build-id/${id:0:2}"
cp "$2" "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
shift 2
exec "$@"
"#;
    let mut command = fixture.command("unshare");
    command.args(["--mount", "bash", "-c", script, "bash"]);
    command.arg(&whole).arg(fixture.path("whole.debug"));
    let inner = tool(&fixture);
    command
        .arg(inner.get_program())
        .args(["run", "--kind", "graph", "-o"]);
    command
        .arg(fixture.path("installed.rmk"))
        .arg("--")
        .arg(&stripped);
    command.env("RINGMARK_LIB", library());
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let found = functions(&fixture, "installed.rmk");
    assert_eq!(
        found.keys().collect::<Vec<_>>(),
        ["leaf", "main", "middle", "other", "outer"]
    );
}

/// Runs a program on a terminal of 80 columns, and prints what it says.
const ON_A_TERMINAL: &str = "\
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 80, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
said = b''
while True:
    try:
        part = os.read(fd, 4096)
    except OSError:
        break
    if not part:
        break
    said += part
os.waitpid(pid, 0)
sys.stdout.buffer.write(said)
";

#[test]
fn names_are_cut_where_the_terminal_ends() {
    if !require_tools(&["g++", "python3"]) {
        return;
    }
    let fixture = Fixture::new("fn-wide");
    let long = "a_name_of_some_length_".repeat(5);
    let source = format!(
        "namespace n_{long} {{ __attribute__((noinline)) int f_{long}(int x) {{ __asm__ volatile(\"\"); \
         return x + 1; }} }}\nint main(int c, char **) {{ return n_{long}::f_{long}(c) & 0; }}\n"
    );
    std::fs::write(fixture.path("long.c"), source).expect("a file");
    let path = fixture.path("long.c").display().to_string();
    let program = compile(&fixture, &path, "long", &format!("{SITES} -x c++"));
    let _ = traced(&fixture, "graph", &program, "long.rmk").expect_code(0);
    let full = format!("n_{long}::f_{long}(int)");
    let report = |words: &[&str]| {
        let mut command = tool(&fixture);
        let ringmark = command.get_program().to_owned();
        command = {
            let mut python = fixture.command("python3");
            python
                .env("NO_COLOR", "1")
                .env("RINGMARK_PAGER", "")
                .args(["-c", ON_A_TERMINAL])
                .arg(ringmark);
            python
                .arg("report")
                .args(words)
                .arg(fixture.path("long.rmk"));
            python
        };
        let finished = run(&mut command, LIMIT).expect("python3").expect_code(0);
        finished.stdout_text()
    };
    let cut = report(&[]);
    let lines = cut.lines().map(str::trim_end);
    assert!(
        lines.clone().all(|line| line.chars().count() <= 80),
        "{cut}"
    );
    assert!(
        cut.contains("  n_a_") && cut.contains("…") && cut.contains("(…)  long"),
        "{cut}"
    );
    assert!(report(&["--wide"]).contains(&full));
    // Into a pipe they stay whole.
    let piped = ringmark(&fixture, "report", &[&fixture.path("long.rmk")]).stdout_text();
    assert!(piped.contains(&full), "{piped}");
}
