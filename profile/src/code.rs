//! The code of a process: unwinding its stacks, and the functions that its addresses are in.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use framehop::Unwinder as _;

use ringmark_format::demangle;

use crate::arch::{self, Registers};
use crate::elf;
use crate::frame_pointer;
use crate::module::{Bytes, Loaded, Mapping, Module};
use crate::target::Target;

/// Frames of a stack that are kept.
const DEEPEST: usize = 512;
/// How often the mappings are read again for code that was not there before, at most.
const AGAIN: Duration = Duration::from_millis(20);
/// The part of the time that this may take is one of so many.
const AGAIN_PART: u32 = 200;
/// Longest code that the kernel maps into a process and that has no file, in bytes.
const KERNEL_CODE_MAX: u64 = 1 << 20;

/// Longest file of functions that were made at run time, in bytes.
const MADE_MAX: u64 = 256 << 20;

/// The name of what has none: code that the program made at run time, and said nothing of.
pub const WITHOUT_FILE: &str = "code without a file";

/// Number of a function in [`Code::functions`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct FunctionId(u32);

/// A function of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name; without a symbol its place in its file, such as `libfoo.so+0x11d0`.
    pub name: String,
    /// The file that it is in, without directories; empty: code that was made at run time.
    pub module: String,
    /// Whether the file has places that a function tracer can patch.
    pub has_sites: bool,
}

/// The functions of a stack, the one that runs or waits first.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Stack {
    pub(crate) functions: Box<[FunctionId]>,
    /// It reaches to where its thread began.
    pub(crate) is_whole: bool,
}

/// The code that a process has mapped.
pub(crate) struct Code {
    unwinder: arch::Unwinder<Bytes>,
    cache: arch::Cache,
    modules: Vec<Module>,
    /// Functions of code that was made at run time: address, size and name.
    made: Vec<(u64, u64, String)>,
    /// When the mappings may be read again.
    due: Instant,
    functions: Vec<Arc<Function>>,
    /// By module and start.
    known: HashMap<(usize, u64), FunctionId>,
    /// By address.
    places: HashMap<u64, FunctionId>,
}

/// In place of a module's number: code without a file.
const NO_MODULE: usize = usize::MAX;

impl Code {
    /// The code that a process has mapped now.
    pub(crate) fn of(target: &Target) -> Self {
        let mut code = Self {
            unwinder: arch::Unwinder::new(),
            cache: arch::Cache::new(),
            modules: Vec::new(),
            made: Vec::new(),
            due: Instant::now(),
            functions: Vec::new(),
            known: HashMap::new(),
            places: HashMap::new(),
        };
        code.learn(target);
        code
    }

    /// Forgets what was mapped, and reads it anew: the process has executed another program.
    pub(crate) fn begin_again(&mut self, target: &Target) {
        self.unwinder = arch::Unwinder::new();
        self.cache = arch::Cache::new();
        self.modules.clear();
        self.known.clear();
        self.places.clear();
        self.learn(target);
    }

    /// The functions that stacks have so far.
    pub(crate) fn function(&self, id: FunctionId) -> &Arc<Function> {
        &self.functions[id.0 as usize]
    }

    /// Whether any code is known.
    pub(crate) const fn is_empty(&self) -> bool {
        self.modules.is_empty()
    }

    /// Reads the mappings, and the tables of files that were not mapped before.
    fn learn(&mut self, target: &Target) {
        let begun = Instant::now();
        let maps = target.text("maps").unwrap_or_default();
        for mapping in maps.lines().filter_map(Mapping::parse) {
            if self
                .modules
                .iter()
                .any(|known| known.range == mapping.range && known.path == mapping.path)
            {
                continue;
            }
            let Some(loaded) = load(&mapping, target) else {
                continue;
            };
            self.unwinder.add_module(loaded.unwind);
            self.modules.push(loaded.module);
        }
        self.made = made_at_run_time(target);
        // Addresses that were in no function may be in one now.
        self.places.clear();
        self.due = Instant::now() + AGAIN.max(begun.elapsed().saturating_mul(AGAIN_PART));
    }

    /// Learns what was mapped since, if one of these addresses is in no code that is known; returns whether it did.
    fn learn_more(&mut self, target: &Target, addresses: &[u64]) -> bool {
        let are_known = addresses.iter().all(|address| self.is_code(*address));
        let is_due = !are_known && self.is_due();
        if is_due {
            self.learn(target);
        }
        is_due
    }

    /// Unwinds a stack. `copy`: its bytes from the stack pointer on.
    pub(crate) fn unwind(&mut self, target: &Target, from: Registers, copy: &[u8]) -> Stack {
        let (mut addresses, mut is_whole) = self.addresses(from, copy);
        if self.learn_more(target, &addresses) {
            (addresses, is_whole) = self.addresses(from, copy);
        }
        if !is_whole && from.frame_pointer.is_none() {
            for candidate in self.frame_pointers(target, from, copy) {
                let frame_pointer = Some(candidate);
                let with = Registers {
                    frame_pointer,
                    ..from
                };
                let (found, reaches_the_start) = self.addresses(with, copy);
                if reaches_the_start || found.len() > addresses.len() {
                    (addresses, is_whole) = (found, reaches_the_start);
                }
                if is_whole {
                    break;
                }
            }
        }
        let functions = addresses
            .into_iter()
            .map(|address| self.function_of(address))
            .collect();
        Stack {
            functions,
            is_whole,
        }
    }

    /// Whether what was mapped since may be learned now.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    pub(crate) fn is_code(&self, address: u64) -> bool {
        let mut modules = self.modules.iter();
        modules.any(|module| module.range.contains(&address))
    }

    /// What the frame pointer may be.
    fn frame_pointers(&self, target: &Target, from: Registers, copy: &[u8]) -> Vec<u64> {
        let is_code = |address| self.is_code(address);
        frame_pointer::candidates(from.stack_pointer, copy, target, is_code)
    }

    /// The addresses of a stack, and whether they reach to where the thread began.
    fn addresses(&mut self, from: Registers, copy: &[u8]) -> (Vec<u64>, bool) {
        let mut read = |address: u64| {
            let place = address.checked_sub(from.stack_pointer).ok_or(())?;
            let place = usize::try_from(place).map_err(|_| ())?;
            let word = copy.get(place..).and_then(|rest| rest.get(..8)).ok_or(())?;
            <[u8; 8]>::try_from(word)
                .map(u64::from_le_bytes)
                .map_err(|_| ())
        };
        let registers = arch::first_frame(from);
        let mut frames =
            self.unwinder
                .iter_frames(from.instruction, registers, &mut self.cache, &mut read);
        let mut addresses = Vec::new();
        let is_whole = loop {
            match frames.next() {
                Ok(Some(frame)) if frame.address() == arch::UNKNOWN => {}
                Ok(Some(frame)) => addresses.push(frame.address_for_lookup()),
                Ok(None) => break true,
                Err(_) => break false,
            }
            if addresses.len() >= DEEPEST {
                break false;
            }
        };
        (addresses, is_whole)
    }

    /// The function that an address is in.
    fn function_of(&mut self, address: u64) -> FunctionId {
        if let Some(known) = self.places.get(&address) {
            return *known;
        }
        let (key, function) = self.look_up(address);
        let next = FunctionId(self.functions.len() as u32);
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            self.functions.push(Arc::new(function));
        }
        self.places.insert(address, id);
        id
    }

    fn look_up(&mut self, address: u64) -> ((usize, u64), Function) {
        let found = self
            .modules
            .iter()
            .position(|module| module.range.contains(&address));
        let Some(number) = found else {
            return self.made_at(address);
        };
        let module = &mut self.modules[number];
        let (file_name, has_sites) = (module.file_name().to_owned(), module.has_sites);
        let (start, symbol) = module.function_at(address);
        let name = demangle::readable(symbol.unwrap_or_default(), file_name.as_bytes(), start);
        let function = Function {
            name: String::from_utf8_lossy(&name).into_owned(),
            module: file_name,
            has_sites,
        };
        ((number, start), function)
    }

    /// A function that the program made itself, as a JIT compiler does and says in a file.
    fn made_at(&self, address: u64) -> ((usize, u64), Function) {
        let place = self.made.partition_point(|made| made.0 <= address);
        let made = place.checked_sub(1).map(|at| &self.made[at]);
        let (start, name) = match made {
            Some((start, size, name)) if address - start < *size => (*start, name.clone()),
            _ => (0, WITHOUT_FILE.to_owned()),
        };
        let function = Function {
            name,
            module: String::new(),
            has_sites: false,
        };
        ((NO_MODULE, start), function)
    }
}

/// Reads the file of a mapping: as the process sees it, or as the kernel keeps it if it was replaced since.
fn load(mapping: &Mapping, target: &Target) -> Option<Loaded> {
    if mapping.path == "[vdso]" {
        let bytes = mapping.range.end.saturating_sub(mapping.range.start);
        let mut copy = vec![0; usize::try_from(bytes.min(KERNEL_CODE_MAX)).ok()?];
        let came = target.read_memory(mapping.range.start, &mut copy);
        return Module::of_kernel(mapping, copy.get(..came)?);
    }
    let pid = target.pid();
    let (from, to) = (mapping.range.start, mapping.range.end);
    let path = mapping
        .path
        .strip_suffix(" (deleted)")
        .unwrap_or(&mapping.path);
    [
        format!("/proc/{pid}/root{path}"),
        format!("/proc/{pid}/map_files/{from:x}-{to:x}"),
    ]
    .into_iter()
    .find_map(|file| Module::load(mapping, PathBuf::from(file)))
}

/// Functions that a program made, by the file that it writes for profilers: `/tmp/perf-PID.map`.
fn made_at_run_time(target: &Target) -> Vec<(u64, u64, String)> {
    let own_number = target.text("status").ok().and_then(|status| {
        let line = status.lines().find(|line| line.starts_with("NSpid:"))?;
        line.split_ascii_whitespace().last().map(str::to_owned)
    });
    let number = own_number.unwrap_or_else(|| target.pid().to_string());
    let path = format!("/proc/{}/root/tmp/perf-{number}.map", target.pid());
    let file = elf::open(Path::new(&path)).map(|file| file.take(MADE_MAX));
    let Ok(text) = file.and_then(std::io::read_to_string) else {
        return Vec::new();
    };
    let mut made: Vec<_> = text.lines().filter_map(made_function).collect();
    // Of two at one place the later one is the one that is there.
    made.reverse();
    made.sort_by_key(|made| made.0);
    made.dedup_by_key(|made| made.0);
    made
}

/// A line of such a file: start and size, and the name. Java writes `0x` before the numbers.
fn made_function(line: &str) -> Option<(u64, u64, String)> {
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let mut words = line.splitn(3, ' ');
    Some((
        hex(words.next()?)?,
        hex(words.next()?)?,
        words.next()?.to_owned(),
    ))
}

#[cfg(test)]
mod tests {
    use super::made_function;

    #[test]
    fn lines_of_compilers_at_run_time() {
        let of = |line| made_function(line);
        let node = "7f10 2a JS:*work /tmp/spin.js:1:14";
        let name = "JS:*work /tmp/spin.js:1:14".to_owned();
        assert_eq!(of(node), Some((0x7f10, 0x2a, name)));
        let java = "0x00007f10 0x0000002a long Spin.work(int)";
        let name = "long Spin.work(int)".to_owned();
        assert_eq!(of(java), Some((0x7f10, 0x2a, name)));
        for line in ["", "7f10", "7f10 2a", "x 2a name"] {
            assert_eq!(of(line), None, "{line:?}");
        }
    }
}
