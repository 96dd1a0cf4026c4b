//! Promise: functions of a program are traced from its start, those of modules that it loads later
//! too; what cannot be traced is said, with the reason.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::{
    LIMIT, SITES, calls, compile, expect_error, ringmark, start, tool,
};
use ringmark_tests::{require_tools, run};

/// The command that stands at the slowest call shows it from its begin on.
fn expect_slowest_is_shown(fixture: &Fixture, dump: &Path) {
    let slowest = ringmark(fixture, "report --slowest 1", &[dump]).stdout_text();
    let shows = slowest.lines().last().unwrap_or_default().trim();
    let shows = shows.strip_prefix("ringmark ").expect("a command");
    assert!(shows.starts_with("graph "), "{slowest}");
    let shown = ringmark(fixture, shows, &[]).expect_code(0).stdout_text();
    assert!(shown.contains("| main() {\n"), "from its begin on: {shown}");
}

#[test]
fn a_program_is_traced_from_its_start() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-run");
    for flags in ["", "-fno-pie -no-pie", "-fcf-protection", "-static-pie"] {
        let program = compile(&fixture, "nested.c", "nested", &format!("{SITES} {flags}"));
        let dump = fixture.path("run.rmk");
        let mut command = tool(&fixture);
        // Without --filter: all functions.
        command.args(["run", "--kind", "graph", "-o"]);
        command.arg(&dump).arg("--").arg(&program).arg("1000");
        let finished = run(&mut command, LIMIT).expect("it starts");
        if flags == "-static-pie" {
            expect_error(
                finished,
                1,
                "nested: is linked statically: nothing can be preloaded",
            );
            continue;
        }
        let finished = finished.expect_code(0);
        let expected = [
            ("leaf", 2000),
            ("main", 1),
            ("middle", 1000),
            ("other", 1000),
            ("outer", 1000),
        ];
        let expected = expected.map(|(name, calls)| (name.to_owned(), calls));
        assert_eq!(
            calls(&fixture, "", &dump),
            BTreeMap::from(expected),
            "{flags}"
        );
        let table = finished.stderr_text();
        assert!(
            table.contains("COUNT") && table.contains("2,000"),
            "{table}"
        );
        expect_slowest_is_shown(&fixture, &dump);
        let graph = ringmark(&fixture, "graph", &[&dump])
            .expect_code(0)
            .stdout_text();
        let shape: String = graph
            .lines()
            .skip(2)
            .filter_map(|line| Some(format!("{}\n", line.split_once('|')?.1.get(1..)?)))
            .collect();
        let round =
            "  outer() {\n    middle() {\n      leaf();\n      leaf();\n    }\n    other();\n  }\n";
        assert_eq!(
            shape,
            format!("main() {{\n{}}} /* main() */\n", round.repeat(1000)),
            "{flags}"
        );
    }
}

#[test]
fn arguments_results_and_durations_are_recorded() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-detail");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let dump = fixture.path("run.rmk");
    let record =
        "record --kind function -F lea? -F @nested --notrace m* -N o* --args 1 --result -o";
    let mut command = tool(&fixture);
    command
        .args(record.split(' '))
        .arg(&dump)
        .arg("--")
        .arg(&program)
        .arg("3");
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let text = ringmark(&fixture, "cat", &[&dump])
        .expect_code(0)
        .stdout_text();
    let of = |what: &str| {
        let lines = text.lines().filter(|line| line.contains(" leaf+"));
        let values = lines.filter_map(|line| line.split_once(what));
        values
            .map(|(_, value)| value.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(of(" arg1="), ["0x0", "0x1", "0x1", "0x2", "0x2", "0x3"]);
    assert_eq!(of("result="), ["0x0", "0x2", "0x2", "0x4", "0x4", "0x6"]);
    assert_eq!(
        calls(&fixture, "", &dump),
        BTreeMap::from([("leaf".to_owned(), 6)])
    );
    // No call takes that long but `main`.
    let words = "run --kind graph --all-functions --min-time 1ms -o";
    let mut command = tool(&fixture);
    command
        .args(words.split(' '))
        .arg(&dump)
        .arg("--")
        .arg(&program)
        .args(["5", "2000"]);
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let found = calls(&fixture, "", &dump);
    assert_eq!(found.get("main"), Some(&1), "{found:?}");
    assert!(!found.contains_key("leaf"), "{found:?}");
}

#[test]
fn modules_are_followed() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-late");
    let program = compile(&fixture, "late.c", "late", SITES);
    let module = compile(
        &fixture,
        "late_plugin.c",
        "plug.so",
        &format!("{SITES} -shared -fPIC"),
    );
    let dump = fixture.path("late.rmk");
    let mut command = tool(&fixture);
    command
        .args(["run", "--kind", "graph", "--filter", "@plug.so", "-o"])
        .arg(&dump);
    command
        .arg("--")
        .arg(&program)
        .arg(&module)
        .args(["500", "1000"]);
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let found = calls(&fixture, "", &dump);
    println!("of 1000 calls after dlopen: {found:?}");
    assert_eq!(found.len(), 2, "{found:?}");
    // In both rounds most of the calls, which take more than half a second.
    assert!(
        found.values().all(|calls| (501..=1000).contains(calls)),
        "{found:?}"
    );
    let (work, part) = (found["plug_work"], found["plug_part"]);
    assert!(work.abs_diff(part) <= 2, "{found:?}");
}

#[test]
fn what_can_be_traced_is_listed() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-list");
    let mut source = String::from("#include <unistd.h>\n");
    for n in 0..1500 {
        let _ = writeln!(
            source,
            "int a_rather_long_name_{n}(int x) {{ return x + {n}; }}"
        );
    }
    let none = "__attribute__((patchable_function_entry(0)))";
    let _ = write!(
        source,
        "{none} int without(void) {{ return 1; }}\nint main(void) {{ pause(); }}"
    );
    fs::write(fixture.path("many.c"), source).expect("a file");
    let path = fixture.path("many.c");
    for flags in ["", "-fno-pie -no-pie", "-Wl,-z,pack-relative-relocs"] {
        let flags = format!("-O0 -fpatchable-function-entry=5 {flags}");
        let program = compile(&fixture, &path.to_string_lossy(), "many", &flags);
        let listed = ringmark(&fixture, "functions", &[&program])
            .expect_code(0)
            .stdout_text();
        assert_eq!(listed.lines().count(), 1501, "{flags}");
        let some = ringmark(&fixture, "functions", &[&program, Path::new("*name_1?")]);
        assert_eq!(some.expect_code(0).stdout_text().lines().count(), 10);
        let running = start(&fixture, &program);
        let of_process = format!("functions -p {}", running.id());
        let live = ringmark(&fixture, &of_process, &[])
            .expect_code(0)
            .stdout_text();
        let names = |text: &str, place| {
            let words = text
                .lines()
                .filter_map(|line| line.split_whitespace().nth(place));
            words.map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(names(&live, 3), names(&listed, 2), "{flags}");
        let why = ringmark(&fixture, &format!("{of_process} --why without"), &[]).expect_code(4);
        assert!(
            why.stdout_text()
                .starts_with("without: no NOPs were left for it")
        );
        let _ = ringmark(&fixture, &format!("{of_process} --why main"), &[]).expect_code(0);
        expect_error(
            ringmark(&fixture, &format!("{of_process} --why nowhere"), &[]),
            4,
            "no such function",
        );
        drop(running);
        let _ = ringmark(&fixture, "clean", &[]);
    }
}

#[test]
fn refusals_say_why() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-refused");
    let nested = compile(&fixture, "nested.c", "nested", SITES);
    let plain = compile(&fixture, "nested.c", "plain", "-O2");
    let dump = fixture.path("run.rmk");
    let recorded = |words: &str, program: &Path| {
        let mut command = tool(&fixture);
        command
            .args(words.split(' '))
            .arg("-o")
            .arg(&dump)
            .arg("--")
            .arg(program);
        command
    };
    let refused = |words: &str, code, text: &str| {
        let mut command = recorded(words, &nested);
        expect_error(run(&mut command, LIMIT).expect("it starts"), code, text);
        assert!(!dump.exists(), "{words}: nothing was started");
    };
    refused("run --kind dance -F x", 2, "graph");
    refused("run -F x", 2, "no kind");
    refused(
        "record --kind graph -F ( --match regex",
        2,
        "--filter: pattern \"(\"",
    );
    let mut command = recorded("run --kind graph -F x", &nested);
    command.env("RINGMARK_LIB", "/nowhere");
    let said = "looked for /nowhere/libringmark_functions.so, /nowhere; RINGMARK_LIB";
    expect_error(run(&mut command, LIMIT).expect("it starts"), 4, said);
    let mut command = recorded("run --kind graph -F nothing", &plain);
    let finished = run(&mut command, LIMIT).expect("it starts");
    expect_error(finished, 0, "no call of a function");
    let short = "-O2 -fpatchable-function-entry=3";
    let refused = compile(&fixture, "nested.c", "refused", short);
    let mut command = recorded("run --kind graph --all-functions", &refused);
    let finished = run(command.arg("1"), LIMIT).expect("it starts");
    expect_error(
        finished,
        1,
        "patch sites can be used, the first for this: 3 bytes of NOP, expected 5",
    );
}

/// An anonymous session is found in a running process only.
#[test]
fn a_session_without_a_name_is_refused_before_the_program_runs() {
    let fixture = Fixture::new("fn-memfd");
    let made = fixture.path("made");
    for words in ["run --kind graph -o", "run -o", "record -o"] {
        let mut command = tool(&fixture);
        command.env("RINGMARK", "memfd=1");
        command.args(words.split(' ')).arg(fixture.path("run.rmk"));
        command.arg("--").arg("touch").arg(&made);
        let said = "RINGMARK=memfd=1: memfd: found 1, expected 0";
        expect_error(run(&mut command, LIMIT).expect("it starts"), 2, said);
        assert!(!made.exists(), "{words}");
    }
}

#[test]
fn refusals_of_a_running_program_say_why() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-refused-live");
    let program = start(&fixture, &compile(&fixture, "nested.c", "nested", SITES));
    let pid = program.id();
    let ask = |words: &str, code, text: &str| {
        expect_error(
            ringmark(&fixture, &format!("trace {words} -p {pid}"), &[]),
            code,
            text,
        );
    };
    ask("start", 2, "expected --filter PATTERN, or --all-functions");
    ask("start -F nosuch*", 4, "\"nosuch*\" matches no function");
    ask(
        "stop -T x",
        4,
        "no tracer \"x\"; there are: graph, function",
    );
    ask(
        "start -T graph --kind function -F leaf",
        4,
        "is of kind graph",
    );
    ask("remove -T graph", 0, "");
    ask("start -F leaf --detach", 4, "no tracer available");
    ask("remove -T function", 0, "");
    ask("status", 4, "no tracer available");
    drop(program);
}
