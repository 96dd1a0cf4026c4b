//! Promise: times and counts of functions that are gathered in the traced process are those of its
//! calls; the calls of a dump as JSON are the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{
    LIMIT, SITES, compile, expect_error, library, ringmark, start, tool,
};
use ringmark_tests::json_schema::checked;
use ringmark_tests::{Running, is_long, require_tools, run, wait_until};
use rustix::process::Signal;

type Functions = BTreeMap<String, serde_json::Value>;

/// Functions as `report --json` says them.
fn report(fixture: &Fixture, words: &str, files: &[&Path]) -> Functions {
    let finished = ringmark(fixture, &format!("report --json {words}"), files);
    let text = finished.expect_code(0).stdout_text();
    let objects = checked(&text).into_iter();
    let functions =
        objects.filter(|object| object["of"] == "function" || object["of"] == "profile");
    let named =
        |object: serde_json::Value| (object["name"].as_str().expect("a name").into(), object);
    functions.map(named).collect()
}

fn number(object: &serde_json::Value, key: &str) -> u64 {
    object[key]
        .as_u64()
        .unwrap_or_else(|| panic!("{key}: {object}"))
}

fn calls_of(functions: &Functions) -> BTreeMap<String, u64> {
    let calls = functions
        .iter()
        .map(|(name, f)| (name.clone(), number(f, "count")));
    calls.filter(|(_, calls)| *calls > 0).collect()
}

/// Calls as the program itself has counted them.
type Own = BTreeMap<String, u64>;

/// The program with its threads' work done, traced as `wishes` say, and its own counts.
fn worked(fixture: &Fixture, wishes: &str) -> (Running, Own) {
    let flags = "-O2 -fpatchable-function-entry=5 -pthread";
    let program = compile(fixture, "calls_profile.c", "calls_profile", flags);
    let counts = fixture.path("counts");
    let mut command = fixture.command(&program);
    let ring = if is_long() { "32M" } else { "4M" };
    let ringmark = format!("mode=discard,keep=always,ring={ring},session=256M");
    command.env("RINGMARK", ringmark);
    command.env("RINGMARK_TRACE", wishes);
    command.env("LD_PRELOAD", library()).arg(&counts);
    command.args(["4", if is_long() { "20000" } else { "500" }]);
    let running = Running::start(&mut command).expect("it starts");
    let text = wait_until(LIMIT, "the program's counts", || {
        std::fs::read_to_string(&counts).ok()
    });
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    let own = pairs.map(|(name, calls)| (name.to_owned(), calls.parse().expect("a number")));
    (running, own.collect())
}

/// In every thread `worker` is around all the others: their own times are its total.
fn expect_sums(functions: &Functions, around: &str) {
    let sum = |key: &str| -> u64 { functions.values().map(|f| number(f, key)).sum() };
    let total = number(&functions[around], "total_ns");
    let rounding = functions.len() as u64;
    assert!(
        sum("self_ns").abs_diff(total) <= rounding,
        "{} of {total} in {around}",
        sum("self_ns")
    );
    for (name, f) in functions {
        let (own, total) = (number(f, "self_ns"), number(f, "total_ns"));
        assert!(own <= total, "{name}: {f}");
        let (min, max) = (number(f, "min_ns"), number(f, "max_ns"));
        let middle = ["p50_ns", "p99_ns"].map(|key| number(f, key));
        let rising = [min, middle[0], middle[1], max];
        assert!(rising.is_sorted(), "{name}: {rising:?}");
        let in_histogram = f["histogram"].as_array().expect("pairs").iter();
        let counted: u64 = in_histogram
            .map(|pair| pair[1].as_u64().expect("calls"))
            .sum();
        assert_eq!(counted, number(f, "count"), "{name}");
    }
}

/// What the profile says of unwound calls, and of one that has not ended.
fn expect_ends(functions: &Functions, own: &Own) {
    assert_eq!(number(&functions["fall"], "not_returned"), own["fall"]);
    assert_eq!(number(&functions["catches"], "not_returned"), 0);
    let open: Vec<_> = functions
        .iter()
        .filter(|(_, f)| number(f, "open") > 0)
        .collect();
    let names: Vec<_> = open.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["main"]);
}

#[test]
fn counts_are_exact_and_times_add_up() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-profile");
    let some = "tracer=some;kind=profile;filter=worker;filter=leaf";
    let (program, own) = worked(&fixture, &format!("tracer=profile;filter=*;{some}"));
    let of = |name: &str| {
        report(
            &fixture,
            &format!("-p {} --tracer {name}", program.id()),
            &[],
        )
    };
    let all = of("profile");
    assert!(all.len() > 75, "an answer of several parts: {}", all.len());
    let mut counted = calls_of(&all);
    assert_eq!(counted.remove("main"), Some(1), "which has not ended");
    assert_eq!(counted, own);
    expect_ends(&all, &own);
    let mut ended = all.clone();
    let main = ended.remove("main").expect("the call that has not ended");
    assert_eq!((number(&main, "count"), number(&main, "open")), (1, 1));
    assert!(main["total_ns"].is_null(), "{main}");
    expect_sums(&ended, "worker");
    // Another tracer, which knows nothing of what is between its two functions.
    let some = of("some");
    assert_eq!(some.len(), 2);
    assert!(some.iter().all(|(name, f)| number(f, "count") == own[name]));
    expect_sums(&some, "worker");
    // Without a name both, and nothing else, for there are no records.
    let text = ringmark(&fixture, &format!("report -p {}", program.id()), &[]);
    let text = text.expect_code(0).stdout_text();
    assert_eq!(text.matches(" worker ").count(), 2, "{text}");
    assert!(text.contains("~P50") && text.contains("~P99"), "{text}");
    let refused = ringmark(
        &fixture,
        &format!("report -p {} -T profile --tid 1", program.id()),
        &[],
    );
    expect_error(refused, 2, "all threads");
}

#[test]
fn a_graph_tracer_on_the_same_functions_says_the_same() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-both");
    let (program, own) = worked(&fixture, "tracer=profile;filter=*;tracer=graph;filter=*");
    let of = |name: &str| {
        report(
            &fixture,
            &format!("-p {} --tracer {name}", program.id()),
            &[],
        )
    };
    let (mut profile, mut graph) = (of("profile"), of("graph"));
    expect_ends(&profile, &own);
    profile.remove("main");
    // There it is a call without an end.
    let main = graph.remove("main").expect("the call that has not ended");
    assert_eq!((number(&main, "count"), number(&main, "no_end")), (1, 1));
    assert_eq!(calls_of(&profile), own);
    assert_eq!(calls_of(&profile), calls_of(&graph));
    expect_sums(&profile, "worker");
    for (name, f) in &profile {
        let other = &graph[name];
        assert_eq!(
            number(f, "not_returned"),
            number(other, "not_returned"),
            "{name}"
        );
        for key in ["total_ns", "self_ns", "mean_ns", "max_ns"] {
            let (a, b) = (number(f, key), number(other, key));
            // Records say when in ns, the profile adds up ticks; both take the same ones.
            let rounding =
                2 * number(f, "count") * (1 + u64::from(key == "self_ns")) + 2 + a / 1000;
            assert!(
                a.abs_diff(b) <= rounding,
                "{name} {key}: {a}, {b} by records"
            );
        }
        for key in ["p50_ns", "p99_ns"] {
            let (a, b) = (number(f, key), number(other, key));
            assert!(
                a <= 2 * b + 2 && b <= 2 * a + 2,
                "{name} {key}: {a}, {b} by records"
            );
        }
    }
}

#[test]
fn a_profile_is_switched_while_the_program_runs_and_is_in_the_dump() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-profile-switch");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let program = start(&fixture, &program);
    let pid = program.id();
    let ask = |words: &str| {
        let finished = ringmark(&fixture, &format!("trace {words} -p {pid} -T profile"), &[]);
        finished.expect_code(0).stdout_text()
    };
    let now = || calls_of(&report(&fixture, &format!("-p {pid} -T profile"), &[]));
    let said = ask("start --filter leaf --filter middle --detach");
    assert!(
        said.starts_with("2 functions matched, 2 patch sites changed"),
        "{said}"
    );
    wait_until(SOON, "calls", || (now().len() == 2).then_some(()));
    ask("filter other");
    wait_until(SOON, "another function", || {
        now().contains_key("other").then_some(())
    });
    ask("stop");
    // A call that was on its way still ends.
    wait_until(SOON, "the end of calls", || {
        let before = now();
        // It calls its functions between any two sleeps.
        program.wait_for_sleeps(10);
        (now() == before).then_some(())
    });
    let before = now();
    assert_eq!(
        before.keys().collect::<Vec<_>>(),
        ["leaf", "middle", "other"]
    );
    assert!(
        before["leaf"].abs_diff(2 * before["middle"]) <= 2,
        "{before:?}"
    );
    // Again: it goes on where it was.
    ask("start --filter leaf --detach");
    wait_until(SOON, "more calls", || {
        (now()["leaf"] > before["leaf"]).then_some(())
    });
    assert_eq!(now()["other"], before["other"]);
    ask("stop");
    expect_in_a_snapshot(&fixture, pid, &now());
    let refused = format!("trace start -p {pid} -T profile --kind graph -F leaf --detach");
    expect_error(ringmark(&fixture, &refused, &[]), 4, "is of kind profile");
    drop(program);
}

/// Calls a function a thousand times after each line.
const A_THOUSAND_EACH: &str = "#include <unistd.h>\n__attribute__((noinline)) int called(int n)\n\
    { __asm__ volatile(\"\" : \"+r\"(n)); return n; }\n\
    int main(void) { char c; while (read(0, &c, 1) == 1) for (int i = 0; i < 1000; i++) called(i); return 0; }\n";

#[test]
fn each_recording_of_a_profile_has_its_own_calls() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-profile-anew");
    let source = fixture.path("thousand.c");
    fs::write(&source, A_THOUSAND_EACH).expect("a file");
    let program = compile(&fixture, &source.to_string_lossy(), "thousand", SITES);
    let mut command = fixture.command(&program);
    let mut program = Running::start(command.stdin(Stdio::piped())).expect("it starts");
    program.wait_until_in(&["0 "]);
    let pid = program.id();
    let mut input = program.child().stdin.take().expect("its input");
    let trace = fixture.path("run.rmk");
    for lines in 1..=3_u64 {
        let mut command = tool(&fixture);
        let words = format!("record -p {pid} --kind profile -F called -o");
        command.args(words.split_whitespace()).arg(&trace);
        let recorder = Running::start(&mut command).expect("it starts");
        let live = || ringmark(&fixture, &format!("trace status -p {pid}"), &[]).stdout_text();
        wait_until(SOON, "a tracer that is on", || {
            live()
                .lines()
                .any(|line| line.starts_with("profile ") && !line.contains(" off "))
                .then_some(())
        });
        input
            .write_all(&vec![b'n'; lines as usize])
            .expect("it reads");
        program.wait_until_in(&["0 "]);
        let counted = || calls_of(&report(&fixture, &format!("-p {pid} -T profile"), &[]));
        wait_until(SOON, "all calls", || {
            (counted().get("called") == Some(&(1000 * lines))).then_some(())
        });
        recorder.signal(Signal::INT).expect("it lives");
        let _ = recorder.finish(SOON).expect_code(0);
        let found = calls_of(&report(&fixture, "-T profile", &[&trace]));
        assert_eq!(found.get("called"), Some(&(1000 * lines)), "{lines}");
    }
    drop(input);
    let _ = program.finish(SOON).expect_code(0);
}

/// A snapshot has the calls that the process itself reports, but for one on its way.
fn expect_in_a_snapshot(fixture: &Fixture, pid: u32, live: &BTreeMap<String, u64>) {
    let dump = fixture.path("now.rmk");
    let snapshot = format!("snapshot -p {pid} -o");
    let _ = ringmark(fixture, &snapshot, &[&dump]).expect_code(0);
    let kept = calls_of(&report(fixture, "-T profile", &[&dump]));
    assert_eq!(
        kept.keys().collect::<Vec<_>>(),
        live.keys().collect::<Vec<_>>()
    );
    assert!(
        kept["leaf"].abs_diff(live["leaf"]) <= 1,
        "{kept:?} {live:?}"
    );
}

#[test]
fn a_profile_of_a_whole_run_is_in_its_dump() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-profile-run");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let dump = fixture.path("run.rmk");
    let mut command = tool(&fixture);
    let words = "run --kind profile --all-functions -o";
    command.args(words.split(' ')).arg(&dump);
    command.arg("--").arg(&program).arg("1000");
    let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let functions = report(&fixture, "", &[&dump]);
    let expected = [
        ("leaf", 2000),
        ("main", 1),
        ("middle", 1000),
        ("other", 1000),
        ("outer", 1000),
    ];
    let expected = expected.map(|(name, calls)| (name.to_owned(), calls));
    assert_eq!(calls_of(&functions), BTreeMap::from(expected));
    expect_sums(&functions, "main");
    let table = finished.stderr_text();
    assert!(
        table.contains("~P99") && table.contains(" outer "),
        "{table}"
    );
    // There are no records.
    expect_error(
        ringmark(&fixture, "graph", &[&dump]),
        3,
        "no function records",
    );
    let page = format!("report --html -o {}", fixture.path("page").display());
    for words in ["export -o -", &page] {
        let said = ringmark(&fixture, words, &[&dump]).stderr_text();
        assert!(said.contains("calls were counted, not recorded"), "{said}");
    }
}

#[test]
fn triggers_say_which_calls_are_counted() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("fn-profile-triggers");
    let flags = format!("{SITES} -pthread");
    let program = compile(&fixture, "triggers.c", "triggers", &flags);
    let (threads, parts) = if is_long() { (8, 1000) } else { (4, 20) };
    // The ends of end_part are counted, have a trigger, and no tracer records them.
    let wishes = "tracer=profile;filter=work;filter=leaf;filter=end_part;\
        trigger=begin_part:entry=start;trigger=end_part:exit=stop;\
        tracer=all;kind=profile;filter=*;\
        tracer=graph;filter=work;trigger=begin_part:exit=stop;trigger=end_part:entry=start";
    let mut command = fixture.command(&program);
    command.env("RINGMARK", "mode=discard,keep=always,ring=4M,session=64M");
    command
        .env("RINGMARK_TRACE", wishes)
        .env("LD_PRELOAD", library());
    command.args([threads.to_string(), parts.to_string()]);
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let dump = fixture.path("all.rmk");
    let _ = ringmark(&fixture, "snapshot -o", &[&dump]).expect_code(0);
    let of = |tracer: &str| report(&fixture, &format!("-T {tracer}"), &[&dump]);
    let expect = |functions: &Functions, expected: &[(&str, u64)]| {
        let expected = expected.iter().map(|(name, n)| ((*name).to_owned(), *n));
        assert_eq!(calls_of(functions), expected.collect());
    };
    // As in `triggers.c`.
    let (inside, outside) = (threads * parts * 100, threads * parts * 30);
    let between = [
        ("work", inside),
        ("leaf", inside + 3 * parts),
        ("end_part", parts),
    ];
    let (some, all) = (of("profile"), of("all"));
    expect(&some, &between);
    let every = [
        ("work", inside + outside),
        ("leaf", inside + outside + 3 * parts),
        ("begin_part", parts),
        ("end_part", parts),
        ("leave_part", parts),
        ("main", 1),
    ];
    expect(&all, &every);
    assert_eq!(number(&all["leave_part"], "not_returned"), parts / 2);
    let mut counted = some.values().chain(all.values());
    assert!(counted.all(|f| number(f, "open") == 0), "{some:?} {all:?}");
    expect(&of("graph"), &[("work", outside - threads * 30)]);
}

/// Reads `graph --json` and prints what is in it: calls, depths, ends, and whether times add up.
const READ_CALLS: &str = r#"
import collections, json, sys
calls = [json.loads(line) for line in open(sys.argv[1])]
count = collections.Counter((c["name"], c["depth"], c["ended"]) for c in calls)
for key in sorted(count): print(*key, count[key])
assert all(c["v"] == 2 and c["kind"] == "call" and c["target"] for c in calls)
assert len({(c["session"], c["pid"], c["tid"]) for c in calls}) == 1
inner = collections.Counter()
for c in calls:
    if c["dur_ns"] is None: assert c["self_ns"] is None; continue
    inner[c["depth"]] += c["dur_ns"]
    below = inner.pop(c["depth"] + 1, 0)
    assert c["self_ns"] == c["dur_ns"] - below or "all" not in sys.argv
    assert c["self_ns"] <= c["dur_ns"]
assert all(a["t_ns"] + a["dur_ns"] <= b["t_ns"] + b["dur_ns"]
           for a, b in zip(calls, calls[1:]))
"#;

#[test]
fn calls_as_json_are_all_there_and_add_up() {
    if !require_tools(&["gcc", "python3"]) {
        return;
    }
    let fixture = Fixture::new("fn-graph-json");
    let program = compile(&fixture, "nested.c", "nested", SITES);
    let dump = fixture.path("run.rmk");
    let mut command = tool(&fixture);
    let words = "run --kind graph --all-functions -o";
    command.args(words.split(' ')).arg(&dump);
    command.arg("--").arg(&program).arg("1000");
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let json = fixture.path("calls.json");
    let read = |words: &str| {
        let text = ringmark(&fixture, &format!("graph --json {words}"), &[&dump]);
        let lines = text.expect_code(0).stdout_text();
        assert!(!checked(&lines).is_empty());
        std::fs::write(&json, lines).expect("a file");
        let share = if words.is_empty() { "all" } else { "some" };
        let mut python = Command::new("python3");
        python.args(["-c", READ_CALLS]).arg(&json).arg(share);
        let finished = run(&mut python, LIMIT).expect("python3");
        finished.expect_code(0).stdout_text()
    };
    let all = "leaf 3 returned 2000\nmain 0 returned 1\nmiddle 2 returned 1000\n\
               other 2 returned 1000\nouter 1 returned 1000\n";
    assert_eq!(read(""), all);
    let shallow = "main 0 returned 1\nouter 1 returned 1000\n";
    assert_eq!(read("--max-depth 2").as_str(), shallow);
}
