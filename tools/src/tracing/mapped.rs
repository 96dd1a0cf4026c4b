//! The files that a process has mapped as code.

use std::path::PathBuf;

use ringmark_function_tracer::sites::Headers;

use super::library::LIBRARY;

/// A program or shared object in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MappedFile {
    /// Where it is read from here.
    pub(crate) path: PathBuf,
    /// Its path as the process knows it.
    pub(crate) module: PathBuf,
    /// Whether it is the program.
    pub(crate) is_program: bool,
    /// Whether a compiler left patch sites, in it or, where it is the program, in any file of the process.
    pub(crate) has_sites: bool,
    /// The sum of this and an address in the file is the address in memory.
    pub(crate) base: u64,
}

/// Those of a process that can be read, the program first. This tool's own objects are none.
pub(crate) fn files(pid: u32) -> Vec<MappedFile> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let program = std::fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let mut files: Vec<MappedFile> = Vec::new();
    for code in maps.lines().filter_map(Code::of) {
        let is_known = files.iter().any(|file| file.module == code.module);
        if !is_known && !code.is_own() {
            files.extend(code.file(pid, &program));
        }
    }
    files.sort_by_key(|file| !file.is_program);
    let has_sites = files.iter().any(|file| file.has_sites);
    if let Some(program) = files.first_mut().filter(|file| file.is_program) {
        program.has_sites = has_sites;
    }
    files
}

/// Code that is mapped from a file.
struct Code {
    start: u64,
    offset: u64,
    module: PathBuf,
}

impl Code {
    /// From a line of `/proc/PID/maps`.
    fn of(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let range = fields.next()?;
        let is_code = fields.next()?.contains('x');
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        is_code.then_some(Self {
            start: number(range.split('-').next()?)?,
            offset: number(fields.next()?)?,
            module: line.get(line.find('/')?..)?.into(),
        })
    }

    /// Whether it is the function tracer or its trampolines.
    fn is_own(&self) -> bool {
        let path = self.module.to_string_lossy();
        path.contains(LIBRARY) || path.starts_with("/memfd:ringmark-")
    }

    fn file(self, pid: u32, program: &std::path::Path) -> Option<MappedFile> {
        let is_program = self.module == program;
        let path = match is_program {
            // This name leads to the file that runs, whatever became of its path.
            true => format!("/proc/{pid}/exe"),
            false => format!("/proc/{pid}/root{}", self.module.display()),
        };
        let path = PathBuf::from(path);
        let headers = Headers::of(&path).ok()?;
        let in_file = self.offset.wrapping_add(headers.code_distance);
        Some(MappedFile {
            path,
            is_program,
            has_sites: headers.names_sites,
            base: self.start.wrapping_sub(in_file),
            module: self.module,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(
        not(target_arch = "x86_64"),
        ignore = "the functions of this program are for another processor"
    )]
    fn code_of_this_process_is_where_its_file_says() {
        let files = files(std::process::id());
        let program = files.first().expect("a program");
        assert!(program.is_program);
        assert!(files.iter().skip(1).all(|file| !file.is_program));
        let here = code_of_this_process_is_where_its_file_says as *const () as u64;
        let bytes = std::fs::read(&program.path).expect("a file");
        let functions = ringmark_movable::functions(&bytes, None).expect("its functions");
        assert!(
            functions
                .iter()
                .any(|one| one.at == here.wrapping_sub(program.base))
        );
    }
}
