//! The machine code of the event path: what the straight line must not hold, and a golden file of
//! it. `RINGMARK_BLESS=1` writes the golden files anew; they are compared as text only under the
//! compiler that wrote them, the rules hold under every one.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use ringmark_tests::{require_tools, workspace_root};

const FUNCTIONS: [&str; 3] = [
    "hot_path_event_u64",
    "hot_path_event_empty",
    "hot_path_event_mixed",
];

/// One instruction: offset in the function, text without offsets that the linker chooses.
#[derive(Debug, Clone)]
struct Instruction {
    offset: u64,
    text: String,
}

impl Instruction {
    fn is(&self, mnemonic: &str) -> bool {
        self.text.split_whitespace().next() == Some(mnemonic)
    }

    /// Where a jump within the function goes.
    fn target(&self) -> Option<u64> {
        let inside = self.text.rsplit_once("+0x")?.1.strip_suffix('>')?;
        u64::from_str_radix(inside, 16).ok()
    }

    fn is_conditional_jump(&self) -> bool {
        self.text.starts_with('j') && !self.is("jmp")
    }
}

#[test]
fn straight_line_has_no_lock_fence_or_call() {
    if !require_tools(&["objdump"]) {
        return;
    }
    let program = build();
    for function in FUNCTIONS {
        let code = disassemble(&program, function);
        let line = straight_line(&code);
        check_straight_line(function, &line).unwrap_or_else(|error| panic!("{error}\n{line:#?}"));
        check_ways_out(function, &code).unwrap_or_else(|error| panic!("{error}\n{code:#?}"));
        compare_with_golden(function, &code);
    }
}

#[test]
fn a_locked_instruction_would_be_seen() {
    let line = |text: &str| Instruction {
        offset: 0,
        text: text.to_owned(),
    };
    let good = [line("rdtsc"), line("cmpxchg %r8,(%rsi)"), line("ret")];
    assert!(check_straight_line("good", &good).is_ok());
    for bad in [
        "lock cmpxchg %r8,(%rsi)",
        "mfence",
        "call *(%rip)",
        "xchg %rax,(%rsi)",
    ] {
        let mut with = good.to_vec();
        with.insert(1, line(bad));
        assert!(check_straight_line("bad", &with).is_err(), "{bad}");
    }
}

/// Builds the example as a user's release build would be.
fn build() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| workspace_root().join("target"));
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo
        .current_dir(workspace_root())
        .args(["build", "--release", "--locked", "-q"]);
    cargo
        .args(["-p", "ringmark", "--example", "hot_path", "--target-dir"])
        .arg(&target);
    assert!(
        cargo.status().expect("cargo").success(),
        "the example hot_path does not build"
    );
    target.join("release/examples/hot_path")
}

fn disassemble(program: &PathBuf, function: &str) -> Vec<Instruction> {
    let mut objdump = Command::new("objdump");
    objdump
        .args(["-d", "--no-show-raw-insn", "-C"])
        .arg(format!("--disassemble={function}"));
    let output = objdump.arg(program).output().expect("objdump");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut code: Vec<Instruction> = text.lines().filter_map(parse).collect();
    let start = code.first().expect("the function is in the program").offset;
    code.iter_mut().for_each(|i| i.offset -= start);
    while code
        .last()
        .is_some_and(|i| i.is("nop") || i.is("int3") || i.is("cs"))
    {
        code.pop();
    }
    code
}

/// `  1a2b:\tmov …` → offset and normalised text.
fn parse(line: &str) -> Option<Instruction> {
    let (address, text) = line.trim_start().split_once(":\t")?;
    let offset = u64::from_str_radix(address, 16).ok()?;
    let text = text.split('#').next()?.trim();
    Some(Instruction {
        offset,
        text: normalise(text),
    })
}

/// Drops what the linker decides: distances from the instruction pointer, thread-local offsets,
/// absolute jump addresses.
fn normalise(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| {
        !(text.starts_with('j') && word.chars().all(|c| c.is_ascii_hexdigit()) && word.len() > 3)
    });
    let joined = words.collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    let mut rest = joined.as_str();
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .map_or(rest.len(), |n| at + 2 + n);
        let linked = rest[digits..].starts_with("(%rip)")
            || rest[at..digits].starts_with("0xffffffffffffff");
        out.push_str(&rest[..at]);
        out.push_str(if linked { "LINKED" } else { &rest[at..digits] });
        rest = &rest[digits..];
    }
    out + rest
}

/// The instructions of an event that is on, in a warm ring, with the counter as clock: no branch
/// is taken but the one that says that `cmpxchg` found an empty word.
fn straight_line(code: &[Instruction]) -> Vec<Instruction> {
    let mut line: Vec<Instruction> = Vec::new();
    let mut at = 0;
    while let Some(instruction) = code.get(at) {
        line.push(instruction.clone());
        let marked = line
            .iter()
            .rev()
            .skip(1)
            .take(2)
            .any(|i| i.text.contains("cmpxchg"));
        let taken = instruction.is("jmp") || (marked && instruction.is("je"));
        at = match instruction.target().filter(|_| taken) {
            Some(target) => code
                .iter()
                .position(|i| i.offset == target)
                .expect("a target inside"),
            None => at + 1,
        };
        if instruction.is("ret") || line.len() > code.len() {
            break;
        }
    }
    line
}

fn check_straight_line(function: &str, line: &[Instruction]) -> Result<(), String> {
    let forbidden = [
        "lock", "call", "mfence", "lfence", "sfence", "xchg", "syscall",
    ];
    for instruction in line {
        if forbidden.iter().any(|word| instruction.is(word)) {
            return Err(format!(
                "{function}: {} on the straight line",
                instruction.text
            ));
        }
    }
    let count = |word: &str| line.iter().filter(|i| i.is(word)).count();
    match (
        count("rdtsc"),
        count("cmpxchg"),
        line.last().is_some_and(|i| i.is("ret")),
    ) {
        (1, 1, true) => Ok(()),
        found => Err(format!(
            "{function}: (rdtsc, cmpxchg, ends in ret) = {found:?}, expected (1, 1, true)"
        )),
    }
}

/// Off the straight line there are at most three calls, all to cold functions: `reserve_slow`, the
/// one that reads another clock than the counter, and the unwinder's of the landing pad.
fn check_ways_out(function: &str, code: &[Instruction]) -> Result<(), String> {
    let calls = code.iter().filter(|i| i.is("call")).count();
    let branches = code.iter().filter(|i| i.is_conditional_jump()).count();
    if calls > 3 || branches > 10 {
        return Err(format!(
            "{function}: {calls} calls and {branches} branches, expected at most 3 and 10"
        ));
    }
    Ok(())
}

fn compare_with_golden(function: &str, code: &[Instruction]) {
    let path = workspace_root()
        .join("tests/golden")
        .join(format!("{function}.x86-64"));
    let lines = code
        .iter()
        .map(|i| format!("{:4x}  {}\n", i.offset, i.text))
        .collect::<String>();
    let text = format!("{}\n{lines}", compiler());
    if std::env::var("RINGMARK_BLESS").is_ok_and(|v| v == "1") {
        fs::write(&path, &text).expect("the golden file can be written");
    }
    let golden =
        fs::read_to_string(&path).expect("the golden file; write it with RINGMARK_BLESS=1");
    if golden.lines().next() == Some(compiler().as_str()) {
        assert_eq!(
            golden,
            text,
            "{}: RINGMARK_BLESS=1 accepts the new code",
            path.display()
        );
    }
}

fn compiler() -> String {
    let output = Command::new("rustc")
        .arg("--version")
        .output()
        .expect("rustc");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}
