//! The machine code of functions, as `objdump` writes it: read, normalised, compared with golden
//! files. `RINGMARK_BLESS=1` writes those anew; they are compared as text only under the compiler
//! that wrote them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::workspace_root;

/// Whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Processor {
    /// Of this machine.
    X86_64,
    /// Cross-built by `./test --full arm`.
    Aarch64,
}

impl Processor {
    /// How golden files call it.
    fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86-64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// What a comment of `objdump` begins with.
    fn comment(self) -> &'static str {
        match self {
            Self::X86_64 => "#",
            Self::Aarch64 => "//",
        }
    }

    fn objdump(self) -> &'static str {
        match self {
            Self::X86_64 => "objdump",
            Self::Aarch64 => "aarch64-linux-gnu-objdump",
        }
    }
}

/// One instruction: offset in the function, text without offsets that the linker chooses.
#[derive(Debug, Clone)]
pub struct Instruction {
    /// Distance from the function's first byte.
    pub offset: u64,
    /// Mnemonic and operands.
    pub text: String,
}

impl Instruction {
    /// Whether this is its mnemonic.
    #[must_use]
    pub fn is(&self, mnemonic: &str) -> bool {
        self.text.split_whitespace().next() == Some(mnemonic)
    }

    /// Where a jump within the function goes.
    #[must_use]
    pub fn target(&self) -> Option<u64> {
        let inside = self.text.rsplit_once("+0x")?.1.strip_suffix('>')?;
        u64::from_str_radix(inside, 16).ok()
    }

    /// Whether it jumps only sometimes.
    #[must_use]
    pub fn is_conditional_jump(&self) -> bool {
        self.text.starts_with('j') && !self.is("jmp")
    }
}

/// The code of one function.
///
/// # Panics
/// When it is not there.
#[must_use]
pub fn disassemble(program: &Path, function: &str) -> Vec<Instruction> {
    disassemble_of(Processor::X86_64, program, function)
}

/// The same for the code of another processor.
///
/// # Panics
/// As [`disassemble`].
#[must_use]
pub fn disassemble_of(processor: Processor, program: &Path, function: &str) -> Vec<Instruction> {
    let text = objdump(processor, program, &format!("--disassemble={function}"));
    let lines = text.lines().filter_map(|line| parse(processor, line));
    function_of(lines.collect())
}

/// The code of all functions with this in their names; several may have one name.
///
/// # Panics
/// When `objdump` does not start.
#[must_use]
pub fn disassemble_all(program: &Path, part: &str) -> BTreeMap<String, Vec<Vec<Instruction>>> {
    let mut functions: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for block in objdump(Processor::X86_64, program, "-d").split("\n\n") {
        let title = block.trim_start().lines().next().unwrap_or("");
        let name = title
            .split_once(" <")
            .and_then(|(_, name)| name.strip_suffix(">:"));
        if let Some(name) = name.filter(|name| name.contains(part)) {
            let lines = block
                .lines()
                .filter_map(|line| parse(Processor::X86_64, line));
            let code = function_of(lines.collect());
            functions.entry(name.to_owned()).or_default().push(code);
        }
    }
    functions
}

fn objdump(processor: Processor, program: &Path, what: &str) -> String {
    let mut objdump = Command::new(processor.objdump());
    objdump.args(["-d", "--no-show-raw-insn", "-C", what]);
    let output = objdump.arg(program).output().expect("objdump");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn function_of(mut code: Vec<Instruction>) -> Vec<Instruction> {
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
fn parse(processor: Processor, line: &str) -> Option<Instruction> {
    let (address, text) = line.trim_start().split_once(":\t")?;
    let offset = u64::from_str_radix(address, 16).ok()?;
    let text = text.split(processor.comment()).next()?.trim();
    Some(Instruction {
        offset,
        text: normalise(text),
    })
}

/// Drops what the linker decides: distances from the instruction pointer, thread-local offsets,
/// absolute jump addresses.
fn normalise(text: &str) -> String {
    let jumps = text.starts_with('j') || text.starts_with("call ");
    let words = text
        .split_whitespace()
        .filter(|word| !(jumps && word.chars().all(|c| c.is_ascii_hexdigit()) && word.len() > 3));
    let joined = words.collect::<Vec<_>>().join(" ");
    let mut out = String::new();
    let mut rest = joined.as_str();
    while let Some(at) = rest.find("0x") {
        let digits = rest[at + 2..]
            .find(|c: char| !c.is_ascii_hexdigit())
            .map_or(rest.len(), |n| at + 2 + n);
        let linked = rest[digits..].starts_with("(%rip)")
            || rest[at..digits].starts_with("0xffffffffffffff");
        let before = &rest[..at];
        // Above or below is the linker's choice, too.
        out.push_str(
            before
                .strip_suffix('-')
                .filter(|_| linked)
                .unwrap_or(before),
        );
        out.push_str(if linked { "LINKED" } else { &rest[at..digits] });
        rest = &rest[digits..];
    }
    out + rest
}

/// Compares a function with `tests/golden/FUNCTION.x86-64`.
///
/// # Panics
/// When it differs, under the compiler that wrote it.
pub fn compare_with_golden(function: &str, code: &[Instruction]) {
    compare_with_golden_of((Processor::X86_64, "rustc"), function, code);
}

/// The same for the code of another compiler, or another processor.
///
/// # Panics
/// As [`compare_with_golden`].
pub fn compare_with_golden_of(
    (processor, compiler): (Processor, &str),
    function: &str,
    code: &[Instruction],
) {
    let path = workspace_root()
        .join("tests/golden")
        .join(format!("{function}.{}", processor.name()));
    let lines = code
        .iter()
        .map(|i| format!("{:4x}  {}\n", i.offset, i.text))
        .collect::<String>();
    let text = format!("{}\n{lines}", version_of(compiler));
    if std::env::var("RINGMARK_BLESS").is_ok_and(|v| v == "1") {
        fs::write(&path, &text).expect("the golden file can be written");
    }
    let golden =
        fs::read_to_string(&path).expect("the golden file; write it with RINGMARK_BLESS=1");
    if golden.lines().next() == Some(version_of(compiler).as_str()) {
        assert_eq!(
            golden,
            text,
            "{}: RINGMARK_BLESS=1 accepts the new code",
            path.display()
        );
    }
}

/// The first line of what a compiler says of itself.
fn version_of(compiler: &str) -> String {
    let output = Command::new(compiler).arg("--version").output();
    let text = output.expect("the compiler").stdout;
    let text = String::from_utf8_lossy(&text).into_owned();
    text.lines().next().unwrap_or_default().trim().to_owned()
}
