//! Promise: functions of a program whose compiler left no patch sites are traced like those with sites, from the
//! start or live: calls are exact, results, output and exit status are those of the program untraced, nothing
//! stays when the command dies. What cannot be traced is named and left alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use ringmark_movable::Form;
use ringmark_reader::{Access, Session, control};
use ringmark_tests::compiler::can_build;
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, calls, compile, library, ringmark, tool};
use ringmark_tests::random::Random;
use ringmark_tests::recording::decode;
use ringmark_tests::{
    Finished, Running, binary, is_long, log_skip, require_tools, run, wait_until,
};
use rustix::process::Signal;

use crate::functions_stepped::{Unwinder, compare, finish};

/// Functions of `unprepared.c` whose first instruction can be moved, whatever compiles the rest.
const MOVABLE: [&str; 5] = ["one_store", "hop", "by_rip", "pushes", "jumps"];

/// Those where a jump takes the place of several, which is put there before the program begins.
const SEVERAL: [&str; 2] = ["several", "decides"];

fn build(fixture: &Fixture) -> PathBuf {
    compile(fixture, "unprepared.c", "unprepared", "-O2 -pthread")
}

/// `NAME COUNT` lines.
fn own(text: &str) -> BTreeMap<String, u64> {
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    pairs
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect()
}

/// That each function that was traced has as many calls as the program counted.
fn expect_exact(found: &BTreeMap<String, u64>, finished: &Finished) {
    let own = own(&finished.stdout_text());
    for name in MOVABLE {
        assert!(found.contains_key(name), "no {name} in {found:?}");
    }
    for (name, count) in found.iter().filter(|(name, _)| own.contains_key(*name)) {
        assert_eq!(own[name], *count, "{name}: {own:?}");
    }
}

#[test]
fn a_program_without_sites_is_traced_from_its_start() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-run");
    let program = build(&fixture);
    for kind in ["graph", "function", "profile"] {
        let mut command = tool(&fixture);
        // Each call counts, however busy the machine is.
        command.args(["run", "--wait", "10s", "--kind", kind, "-o"]);
        command.arg(fixture.path("run.rmk")).arg("--").arg(&program);
        command.args(["4", "3000"]);
        // An event in a handler may be lost, and is counted. A profile loses none.
        command.args((kind != "profile").then_some("calm"));
        let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        let found = calls(&fixture, "", &fixture.path("run.rmk"));
        expect_exact(&found, &finished);
        for name in SEVERAL {
            assert!(found.contains_key(name), "no {name} in {found:?}");
        }
        assert!(!found.contains_key("too_short"), "{found:?}");
    }
    let mut command = tool(&fixture);
    command.args([
        "run",
        "--kind",
        "graph",
        "-F",
        "too_short",
        "-F",
        "hop",
        "-o",
    ]);
    command.arg(fixture.path("run.rmk")).arg("--").arg(&program);
    let told = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let told = told.stderr_text();
    assert!(told.contains("too_short: too short: 2 bytes"), "{told}");
}

/// What is added to an address in the file for that in the program.
fn base_of(program: &Running, file: &Path) -> u64 {
    let maps = fs::read_to_string(format!("/proc/{}/maps", program.id())).expect("maps");
    let name = file.to_string_lossy().into_owned();
    let first = maps.lines().find(|line| line.ends_with(&name));
    let first = first.and_then(|line| line.split('-').next());
    u64::from_str_radix(first.expect("its mapping"), 16).expect("an address")
}

/// The first bytes of functions in a running program.
fn bytes_of(program: &Running, file: &Path) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let functions = ringmark_movable::functions(&fs::read(file).expect("a file"), None);
    let functions = functions.expect("its functions");
    let base = base_of(program, file);
    let memory = fs::File::open(format!("/proc/{}/mem", program.id())).expect("its memory");
    let is_meant = |name: &[u8]| MOVABLE.iter().any(|movable| movable.as_bytes() == name);
    let meant = functions
        .iter()
        .filter(|one| one.names.iter().any(|name| is_meant(name)));
    let code = meant.flat_map(|function| {
        // A jump over an instruction shows in its first bytes; one in padding stays.
        let mut code = [0; 2];
        let read = memory.read_exact_at(&mut code, base + function.at);
        read.expect("its code");
        code
    });
    code.collect()
}

fn start(fixture: &Fixture, program: &Path) -> Running {
    let mut command = fixture.command(program);
    let program = Running::start(command.args(["3", "0"])).expect("it starts");
    // It joins its threads.
    program.wait_until_in(&["202 "]);
    program
}

fn end(program: Running) -> Finished {
    program.signal(Signal::TERM).expect("it lives");
    program.finish(SOON).expect_code(0)
}

#[test]
fn a_running_program_without_sites_is_traced_and_released() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-live");
    let file = build(&fixture);
    let program = start(&fixture, &file);
    let untouched = bytes_of(&program, &file);
    let pid = program.id();
    for kind in ["graph", "function", "profile"] {
        let words = format!(
            "record -p {pid} --kind {kind} -F hop -F one_store -F jumps -F several -F decides \
             --for 100ms -o"
        );
        let told = ringmark(&fixture, &words, &[&fixture.path("run.rmk")]).expect_code(0);
        assert!(
            told.stderr_text().contains("5 functions matched"),
            "{told:?}"
        );
        let found = calls(&fixture, "", &fixture.path("run.rmk"));
        for name in ["hop", "one_store", "jumps", "several", "decides"] {
            assert!(found.get(name) > Some(&0), "{found:?}");
        }
        assert_eq!(bytes_of(&program, &file), untouched, "{kind}");
    }
    let words = format!("trace start -p {pid} --filter too_short --detach");
    let told = ringmark(&fixture, &words, &[]).expect_code(4).stderr_text();
    assert!(told.contains("too_short: too short"), "{told}");
    let finished = end(program);
    assert!(own(&finished.stdout_text())["hop"] > 0);
}

#[test]
fn several_tracers_share_a_moved_instruction() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-several");
    let file = build(&fixture);
    let program = start(&fixture, &file);
    let untouched = bytes_of(&program, &file);
    let pid = program.id();
    let ask = |words: &str| ringmark(&fixture, words, &[]).expect_code(0).stdout_text();
    let start = |tracer: &str| {
        ask(&format!(
            "trace start -p {pid} --tracer {tracer} -F hop -F pushes --detach"
        ))
    };
    assert!(start("graph").contains("2 enabled"));
    assert!(start("function").contains("2 enabled"));
    assert!(ask(&format!("trace stop -p {pid} --tracer graph")).contains("2 enabled"));
    assert_ne!(bytes_of(&program, &file), untouched);
    assert!(ask(&format!("trace stop -p {pid} --tracer function")).contains("0 enabled"));
    assert_eq!(bytes_of(&program, &file), untouched);
    let _ = end(program);
}

#[test]
fn a_command_that_dies_leaves_a_program_that_behaves_as_untraced() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-killed");
    let file = build(&fixture);
    let program = start(&fixture, &file);
    let untouched = bytes_of(&program, &file);
    let pid = program.id().to_string();
    let mut command = tool(&fixture);
    command.args(["trace", "start", "-p", &pid, "--filter", "*"]);
    let command = Running::start(&mut command).expect("it starts");
    wait_until(SOON, "sites that are enabled", || {
        (bytes_of(&program, &file) != untouched).then_some(())
    });
    drop(command.kill());
    wait_until(SOON, "code as it was", || {
        (bytes_of(&program, &file) == untouched).then_some(())
    });
    let _ = end(program);
}

#[test]
fn a_module_that_is_loaded_later_is_traced_while_the_command_is_there() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-late");
    let host = compile(&fixture, "late.c", "late", "-O2");
    let module = compile(
        &fixture,
        "late_plugin.c",
        "late_plugin.so",
        "-O2 -shared -fPIC",
    );
    let listed = ringmark(&fixture, "functions", &[&module])
        .expect_code(0)
        .stdout_text();
    let Some(name) = listed.lines().find_map(|line| {
        let name = line.split_whitespace().nth(2)?;
        name.starts_with("plug_").then(|| name.to_owned())
    }) else {
        log_skip("this compiler's module has no function whose first instruction can be moved");
        return;
    };
    let mut command = tool(&fixture);
    command.args([
        "run",
        "--kind",
        "graph",
        "-F",
        &format!("{name}@late_plugin*"),
        "-o",
    ]);
    command.arg(fixture.path("run.rmk")).arg("--").arg(host);
    // Longer than the command takes to look again.
    command.arg(&module).args(["3000", "1000"]);
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let found = calls(&fixture, "", &fixture.path("run.rmk"));
    assert!(
        found.get(&name).is_some_and(|count| *count > 0),
        "{name}: {found:?}"
    );
}

/// The first function of this name, and of the C library, that can be traced.
fn can_be_traced(fixture: &Fixture, function: &str) -> bool {
    let maps = fs::read_to_string("/proc/self/maps").expect("maps");
    let mut paths = maps.lines().filter_map(|line| line.get(line.find('/')?..));
    let libc = paths
        .find(|path| path.contains("/libc.so"))
        .map(PathBuf::from);
    let can = libc.is_some_and(|libc| {
        let why = ringmark(fixture, &format!("functions --why {function}"), &[&libc]);
        why.code() == 0
    });
    if !can {
        log_skip(&format!("{function} of this C library cannot be traced"));
    }
    can
}

/// A program with this text, whose compiler leaves each call of the C library as it is.
fn allocating(fixture: &Fixture, text: &str) -> PathBuf {
    let source = fixture.path("program.c");
    fs::write(&source, text).expect("a file");
    let flags = "-O2 -fno-builtin";
    compile(fixture, &source.to_string_lossy(), "program", flags)
}

#[test]
fn functions_of_the_c_library_are_traced_and_what_the_tracer_does_is_not() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-libc");
    if !can_be_traced(&fixture, "malloc") {
        return;
    }
    let text = "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n\
        int main(void) { char *volatile p; for (long i = 0; i < 50000; i++) {\n\
        p = malloc(i % 500 + 1); memset(p, 1, i % 500 + 1); free(p); } return 0; }\n";
    let program = allocating(&fixture, text);
    for kind in ["graph", "function", "profile"] {
        for pattern in ["malloc@libc.so*", "*@libc.so*"] {
            let mut command = tool(&fixture);
            command.args(["run", "--kind", kind, "-F", pattern, "-o"]);
            command.arg(fixture.path("run.rmk")).arg("--").arg(&program);
            let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
            let found = calls(&fixture, "", &fixture.path("run.rmk"));
            // The C library allocates a little for itself.
            let mallocs = found["malloc"];
            assert!(
                (50_000..50_100).contains(&mallocs),
                "{kind} {pattern}: {mallocs}"
            );
        }
    }
}

/// The session of a forked child begins in the fork: what that calls is no call of the program's.
/// What its session calls when it begins, in a child of a fork and in each thread, is no call of the program.
#[test]
fn forked_children_lose_no_call_and_leave_no_session() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-libc-forks");
    for kind in ["graph", "function"] {
        let trace = fixture.path("forks.rmk");
        let mut command = tool(&fixture);
        command.args([
            "run",
            "--wait",
            "10s",
            "--kind",
            kind,
            "-F",
            "*@libc.so*",
            "-o",
        ]);
        command.arg(&trace).args(["--", "sh", "-c"]);
        command.arg("(echo a | cat); echo b | cat; (exit 3) & wait");
        let finished = run(&mut command, LIMIT).expect("it starts").expect_code(0);
        assert_eq!(finished.stdout_text(), "a\nb\n");
        if finished
            .stderr_text()
            .contains("none of its functions can be traced")
        {
            return log_skip("no function of this C library can be traced");
        }
        let dump = decode(&[trace]);
        let found = dump.verify();
        assert!(found.events > 0, "{kind}: {}", finished.stderr_text());
        assert_eq!((found.lost, found.missing), (0, 0), "{kind}");
        assert_eq!(fixture.ring_files(), Vec::<PathBuf>::new(), "{kind}");
    }
}

#[test]
fn a_profile_of_a_forked_child_has_the_calls_of_the_program_alone() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-fork");
    if !can_be_traced(&fixture, "malloc") {
        return;
    }
    let text = "#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n\
        int main(void) { char *volatile p; if (fork() != 0) wait(NULL);\n\
        for (int i = 0; i < 100; i++) p = malloc(i + 1); exit(p == NULL); }\n";
    let program = allocating(&fixture, text);
    let mut command = tool(&fixture);
    command.args(["run", "--kind", "profile", "-F", "malloc@libc.so*", "-o"]);
    command.arg(fixture.path("run.rmk")).arg("--").arg(&program);
    let _ = run(&mut command, LIMIT).expect("it starts").expect_code(0);
    let report = ringmark(&fixture, "report --json", &[&fixture.path("run.rmk")]);
    let report = report.expect_code(0).stdout_text();
    let rows = report.lines().map(serde_json::from_str);
    let rows = rows.map(|row| row.expect("JSON"));
    let of_malloc = rows.filter(|row: &serde_json::Value| row["name"] == "malloc");
    let counts: Vec<u64> = of_malloc.filter_map(|row| row["count"].as_u64()).collect();
    // The C library allocates a little for itself.
    let is_right = |count: &u64| (100..110).contains(count);
    assert!(counts.len() == 2 && counts.iter().all(is_right), "{report}");
}

/// What it prints is the same in every run.
const PYTHON: &str = "\
import json, re, hashlib\n\
words = ['%d-%s' % (n, hashlib.md5(str(n).encode()).hexdigest()) for n in range(2000)]\n\
text = json.dumps({w: [len(w), {'w': w, 'n': n}] for n, w in enumerate(words)}, sort_keys=True)\n\
print(hashlib.md5(text.encode()).hexdigest(), json.loads(text) == json.loads(text))\n\
print(len(re.findall(r'(\\d+)-([0-9a-f]+)', text)), re.sub(r'[0-9]+', 'n', text)[:80])\n\
try:\n    json.loads('{')\nexcept ValueError as error:\n    print(error)\n\
def deep(n):\n    return deep(n - 1) if n else 0\n\
try:\n    deep(100000)\nexcept RecursionError as error:\n    print(type(error))\n";

#[test]
fn python_as_it_is_packaged_prints_the_same() {
    if !require_tools(&["python3"]) {
        return;
    }
    let fixture = Fixture::new("moved-python");
    let script = fixture.path("script.py");
    fs::write(&script, PYTHON).expect("a file");
    let plain = run(fixture.command("python3").arg(&script), LIMIT)
        .expect("python3")
        .expect_code(0);
    let all = ["-F", "*", "-F", "*@libpython*"];
    let some = ["-F", "Py*_New*", "-F", "Py*_New*@libpython*"];
    for (kind, filters) in [("profile", all), ("graph", some)] {
        let mut command = tool(&fixture);
        command.args(["run", "--kind", kind]).args(filters);
        command
            .arg("-o")
            .arg(fixture.path("run.rmk"))
            .args(["--", "python3"])
            .arg(&script);
        let traced = run(&mut command, 5 * LIMIT)
            .expect("it starts")
            .expect_code(0);
        assert_eq!(traced.stdout_text(), plain.stdout_text(), "{kind}");
        if kind == "profile" {
            let found = calls(&fixture, "", &fixture.path("run.rmk"));
            assert!(found.len() > 100, "{found:?}");
        }
    }
}

/// Functions that are put on and off, each of one form, and their calls by six threads.
fn many(count: usize) -> String {
    let mut source =
        String::from("#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n");
    for n in 0..count {
        let first = match n % 2 {
            0 => format!("movl ${n}, %eax"),
            _ => "movl %edi, %eax".to_owned(),
        };
        let then = match n % 2 {
            0 => "addl %edi, %eax".to_owned(),
            _ => format!("addl ${n}, %eax"),
        };
        // At every address modulo 16 at which the form is possible.
        let at = [0, 1, 2, 3, 8, 9, 10, 11][n / 2 % 8];
        source += &format!(
            "__asm__(\".text\\n.balign 16\\n.skip {at}, 0x90\\n.globl f{n}\\n.type f{n}, @function\\nf{n}:\\n.cfi_startproc\\n\
             {first}\\n{then}\\nret\\n.cfi_endproc\\n.size f{n}, .-f{n}\\n.balign 16\\n\");\nint f{n}(int);\n"
        );
    }
    source += "static int (*const all[])(int) = {";
    (0..count).for_each(|n| source += &format!("f{n},"));
    source += CALLS_BY_SIX_THREADS;
    source
}

#[test]
fn putting_on_and_taking_off_harms_no_thread() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-churn");
    let (functions, cycles) = if is_long() { (800, 625) } else { (200, 25) };
    let source = fixture.path("many.c");
    fs::write(&source, many(functions)).expect("a file");
    let file = compile(&fixture, &source.to_string_lossy(), "many", "-O2 -pthread");
    let mut command = fixture.command(&file);
    let program = Running::start(&mut command).expect("it starts");
    let pid = program.id();
    let words = format!("trace start -p {pid} -F f* --detach --ring 64K");
    let told = ringmark(&fixture, &words, &[]).expect_code(0).stdout_text();
    assert!(
        told.contains(&format!("{functions} functions matched")),
        "{told}"
    );
    let places = ringmark_reader::find::by_pid(pid).expect("a session");
    let session = Session::open_found(&places[0], Access::Control).expect("a session");
    let ask = |request: &str| {
        let answer = control::request(&session, request, LIMIT).expect("an answer");
        assert_eq!(answer.status, 0, "{}", answer.text);
        answer.text
    };
    for _ in 0..cycles {
        assert!(ask("trace stop").contains("open=0"));
        let text = ask("trace start\nfilter=f*");
        assert!(text.contains(&format!("open={functions}")), "{text}");
    }
    println!("{} installs and removals", 2 * cycles * functions);
    let _ = ask("trace stop");
    let finished = end(program);
    assert_eq!(finished.stdout_text(), "right\n");
}

/// Functions that begin with several short instructions, at every address modulo 64, and their calls by six threads.
fn many_short(count: usize) -> String {
    let mut source =
        String::from("#include <pthread.h>\n#include <signal.h>\n#include <stdio.h>\n");
    for n in 0..count {
        let (at, body) = match n % 4 {
            0 => (
                n / 4 % 64,
                format!(
                    "pushq %rbx\\n.cfi_def_cfa_offset 16\\n.cfi_offset %rbx, -16\\nmovl %edi, %ebx\\n\
                     leal {n}(%rbx), %eax\\npopq %rbx\\n.cfi_def_cfa_offset 8\\nret"
                ),
            ),
            1 => (
                n / 4 % 64,
                format!("nop\\nnop\\nnop\\nnop\\nnop\\nleal {n}(%rdi), %eax\\nret"),
            ),
            2 => (
                n / 4 % 8 * 8 + 7,
                format!(
                    "testl %edi, %edi\\njs 1f\\nleal {n}(%rdi), %eax\\nret\\n1: xorl %eax, %eax\\nret"
                ),
            ),
            _ => (
                n / 4 % 8 * 8 + 7,
                format!("xorl %eax, %eax\\naddl %edi, %eax\\naddl ${n}, %eax\\nret"),
            ),
        };
        let group = n % 10;
        source += &format!(
            "__asm__(\".text\\n.balign 64\\n.skip {at}, 0xcc\\n.globl g{group}_{n}\\n.type g{group}_{n}, @function\\n\
             g{group}_{n}:\\n.cfi_startproc\\n{body}\\n.cfi_endproc\\n.size g{group}_{n}, .-g{group}_{n}\\n\");\n\
             int g{group}_{n}(int);\n"
        );
    }
    source += "static int (*const all[])(int) = {";
    (0..count).for_each(|n| source += &format!("g{}_{n},", n % 10));
    source += CALLS_BY_SIX_THREADS;
    source
}

/// After a table of functions, of which each adds its place to its argument.
const CALLS_BY_SIX_THREADS: &str = "};\nstatic volatile sig_atomic_t over, wrong;\n\
    static void end(int s) { (void)s; over = 1; }\n\
    static void *work(void *a) { while (!over) for (int i = 0; i < (int)(sizeof all / sizeof *all); i++)\n\
    if (all[i](5) != i + 5) wrong = 1; return a; }\n\
    int main(void) { pthread_t t[6]; signal(SIGTERM, end);\n\
    for (int i = 0; i < 6; i++) pthread_create(t + i, 0, work, 0);\n\
    for (int i = 0; i < 6; i++) pthread_join(t[i], 0); puts(wrong ? \"wrong\" : \"right\"); return wrong; }\n";

#[test]
fn jumps_over_several_instructions_harm_no_thread_that_runs_through_them() {
    if !require_tools(&["gcc", "timeout"]) {
        return;
    }
    let fixture = Fixture::new("moved-several");
    let source = fixture.path("many.c");
    let functions = if is_long() { 2560 } else { 512 };
    fs::write(&source, many_short(functions)).expect("a file");
    let file = compile(&fixture, &source.to_string_lossy(), "many", "-O2 -pthread");
    let program = Running::start(&mut fixture.command(&file)).expect("it starts");
    let pid = program.id();
    // Whatever a command has done when it is killed, the program goes on.
    let mut random = Random::seeded();
    let words = format!("trace start -p {pid} -T own --kind profile -F g*_* --detach");
    for _ in 0..if is_long() { 200 } else { 20 } {
        let mut command = fixture.command("timeout");
        command.args(["--signal=KILL", &format!("0.{:05}", random.below(6_000))]);
        command.arg(binary::path()).args(words.split_whitespace());
        command.env("RINGMARK_LIB", library());
        let _ = run(&mut command, LIMIT).expect("timeout");
    }
    for group in 0..10 {
        // A thread may be where a jump is to be put, again and again: then the function is named, and asked for again.
        wait_until(LIMIT, "all functions of a group", || {
            let words =
                format!("trace start -p {pid} -T own --kind profile -F g{group}_* --detach");
            let told = ringmark(&fixture, &words, &[]).expect_code(0).stderr_text();
            let has_left = told.contains("is between") || told.contains("cannot be stopped");
            (!has_left).then_some(())
        });
        let _ = ringmark(&fixture, &format!("trace stop -p {pid} -T own"), &[]).expect_code(0);
    }
    let told = ringmark(&fixture, &words, &[]).expect_code(0).stdout_text();
    // While threads run, a jump is not put on two pages: a command that is killed could leave half of it.
    let found = ringmark_movable::functions(&fs::read(&file).expect("a file"), None);
    let on_two_pages = |function: &ringmark_movable::Function| {
        let movable = function.judged.as_ref().ok();
        movable.is_some_and(|one| one.form == Form::Several && one.site % 4096 > 4091)
    };
    let found = found.expect("its functions");
    let is_own = |function: &&ringmark_movable::Function| {
        function.names.iter().any(|name| name.starts_with(b"g"))
    };
    let refused = found.iter().filter(is_own).filter(|one| on_two_pages(one));
    let refused = format!("; {} refused", refused.count());
    assert!(told.contains(&refused), "{told}");
    let finished = end(program);
    assert_eq!(finished.stdout_text(), "right\n");
}

#[test]
fn a_function_in_which_a_thread_stands_is_left_until_it_has_gone_on() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-parked");
    let file = compile(&fixture, "parked.c", "parked", "-O2");
    let mut command = fixture.command(&file);
    let mut program = Running::start(command.stdin(Stdio::piped())).expect("it starts");
    program.wait_until_in(&["7 "]);
    let pid = program.id();
    let words =
        |name: &str| format!("trace start -p {pid} -T {name} --kind profile -F {name} --detach");
    let _ = ringmark(&fixture, &words("before"), &[]).expect_code(0);
    let mut input = program.child().stdin.take().expect("its input");
    input.write_all(b"on\n").expect("it reads");
    program.wait_until_in(&["0 "]);
    let told = ringmark(&fixture, &words("parked"), &[]).stderr_text();
    assert!(
        told.contains("parked is not traced: a thread is between"),
        "{told}"
    );
    input.write_all(b"on\n").expect("it reads");
    program.wait_until_in(&["7 "]);
    let told = ringmark(&fixture, &words("parked"), &[])
        .expect_code(0)
        .stdout_text();
    assert!(told.contains("; 0 refused"), "{told}");
    input.write_all(b"on\n").expect("it reads");
    let finished = program.finish(SOON).expect_code(0);
    // 1, 2, and twice the numbers from 1 to 1000.
    assert_eq!(finished.stdout_text(), "1001003\n");
}

/// Functions of `stepped_calls.c` whose jump takes the place of instructions. One in padding lies in no unwind
/// entry: there stacks end.
fn stepped_names(program: &Path) -> Vec<String> {
    let functions = ringmark_movable::functions(&fs::read(program).expect("a file"), None);
    let functions = functions.expect("its functions");
    let names = functions.iter().filter_map(|function| {
        let is_meant = function
            .judged
            .as_ref()
            .is_ok_and(|movable| matches!(movable.form, Form::OneStore | Form::Several));
        is_meant.then(|| String::from_utf8(function.names.first()?.clone()).ok())?
    });
    let stepped = ["leaf", "deep", "wide", "tail", "last", "left", "jumps"];
    let is_stepped = |name: &String| stepped.iter().any(|stepped| name.starts_with(stepped));
    names.filter(is_stepped).collect()
}

/// The callers at each instruction of calls of moved sites, in a program that is started and one that is attached to.
fn step_moved(unwinder: Unwinder) {
    if !require_tools(&["gcc"]) || !can_build("gcc", unwinder.flags()) {
        return;
    }
    let fixture = Fixture::new("moved-stepped");
    let flags = format!("-O2 -pthread -ldl {}", unwinder.flags());
    let program = compile(&fixture, "stepped_calls.c", "stepped", &flags);
    let parts = ["plain", "left", "thread"];
    let Some(plain) = unwinder.untraced(fixture.command(&program), &parts) else {
        return;
    };
    let names = stepped_names(&program);
    if names.is_empty() {
        log_skip(
            "this compiler begins no function of stepped_calls.c with an instruction of five bytes",
        );
        return;
    }
    let names: Vec<_> = names
        .iter()
        .flat_map(|name| ["-F", name.as_str()])
        .collect();
    for kind in ["graph", "function", "profile"] {
        let mut command = tool(&fixture);
        command.args(["run", "--kind", kind, "-o"]);
        command.arg(fixture.path("run.rmk")).args(&names);
        command.arg("--").arg(&program);
        compare(&finish(unwinder.start(command, &parts)), &plain, kind);
        let running = unwinder.start(fixture.command(&program), &parts);
        running.wait_until_in(&["7 "]); // It polls its standard input.
        let pid = running.id().to_string();
        let mut command = tool(&fixture);
        command.args([
            "trace", "start", "-p", &pid, "-T", "own", "--kind", kind, "--detach",
        ]);
        let _ = run(command.args(&names), LIMIT)
            .expect("it starts")
            .expect_code(0);
        compare(&finish(running), &plain, &format!("{kind}, attached"));
    }
}

#[test]
fn unwinders_of_libgcc_find_the_callers_at_every_instruction() {
    step_moved(Unwinder::Libgcc);
}

#[test]
fn libunwind_finds_the_callers_at_every_instruction() {
    step_moved(Unwinder::Libunwind);
}

#[test]
fn nothing_but_patterns_with_a_module_means_a_library() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-patterns");
    let file = build(&fixture);
    let program = start(&fixture, &file);
    let pid = program.id();
    let told = ringmark(&fixture, &format!("functions -p {pid} *"), &[])
        .expect_code(0)
        .stdout_text();
    assert!(
        told.contains("one_store") && !told.contains("libc.so"),
        "{told}"
    );
    let words = format!("functions -p {pid} malloc@libc.so*");
    let told = ringmark(&fixture, &words, &[]);
    assert!(
        told.stdout_text().contains("libc.so") || told.code() == 4,
        "{told:?}"
    );
    let _ = end(program);
}

/// Sites that there are not in a program with the code of `one_store` at this address.
fn unfit(at: u64) -> [(String, &'static str); 6] {
    let (inside, data) = (at + 1, at + 0x1000);
    [
        // Other code than there is.
        (
            format!("{at:x} 9 {at:x} - may_change b802000000 x"),
            "not that of its file",
        ),
        // The middle of an instruction.
        (format!("{at:x} 9 {inside:x} - may_change 010000 x"), ""),
        (
            format!("{at:x} 9 ffffff - may_change 00 x"),
            "outside the code",
        ),
        (
            format!("{at:x} 9 0 - may_change 7f454c x"),
            "outside the code",
        ),
        // Jumps in code, and in data.
        (
            format!("{at:x} 9 {at:x} {at:x}:0000000000 may_change b801 x"),
            "",
        ),
        (
            format!("{at:x} 9 {at:x} {data:x}:cccccccccc may_change b801 x"),
            "",
        ),
    ]
}

/// A request names places of a file. What does not fit memory is refused, and nothing of it becomes code.
#[test]
fn a_request_that_does_not_fit_the_program_is_refused() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let fixture = Fixture::new("moved-refused");
    let file = build(&fixture);
    let program = start(&fixture, &file);
    let untouched = bytes_of(&program, &file);
    let pid = program.id();
    let words = format!("trace start -p {pid} -F hop --detach");
    let _ = ringmark(&fixture, &words, &[]).expect_code(0);
    let _ = ringmark(&fixture, &format!("trace stop -p {pid}"), &[]).expect_code(0);
    let places = ringmark_reader::find::by_pid(pid).expect("a session");
    let session = Session::open_found(&places[0], Access::Control).expect("a session");
    let ask = |request: &str| control::request(&session, request, LIMIT).expect("an answer");
    let bytes = fs::read(&file).expect("a file");
    let build_id: String = ringmark_movable::build_id(&bytes)
        .iter()
        .map(|b| format!("{b:02x}"))
        .collect();
    let base = base_of(&program, &file);
    let functions = ringmark_movable::functions(&bytes, None).expect("its functions");
    let one = functions
        .iter()
        .find(|one| one.names.iter().any(|name| name == b"one_store"));
    let at = one.expect("one_store").at;
    let module = format!("module={base:x} {build_id}");
    for (line, why) in unfit(at) {
        let answer = ask(&format!("trace sites\n{module}\nmoved={line}\n"));
        assert_eq!(answer.status, 0, "{}", answer.text);
        let is_refused = answer.text.contains("sites=0") && answer.text.contains(why);
        assert!(is_refused, "{line}: {}", answer.text);
    }
    for wrong in [
        format!("trace sites\nmodule={base:x} 00\nmoved={at:x} 9 {at:x} - may_change b801 x\n"),
        format!("trace sites\nmodule=1000 {build_id}\nmoved={at:x} 9 {at:x} - may_change b801 x\n"),
        format!("trace sites\nmoved={at:x} 9 {at:x} - may_change b801 x\n"),
        format!("trace sites\n{module}\nmoved={at:x} 9 {at:x}\n"),
    ] {
        let answer = ask(&wrong);
        assert_ne!(answer.status, 0, "{wrong}: {}", answer.text);
    }
    assert_eq!(bytes_of(&program, &file), untouched);
    let _ = end(program);
}
