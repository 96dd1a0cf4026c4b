//! Where traced functions stand in the source, by the files of their modules.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use ringmark_console::units::counted;
use ringmark_console::{note, printable};
use ringmark_decoder::{Dump, Function, Session};
use ringmark_format::Uuid;
use ringmark_function_tracer::sites::separate_file;

/// `path:line` of functions, by their session and address.
#[derive(Debug, Default)]
pub(crate) struct SourcePlaces(HashMap<(Uuid, u64), String>);

/// A file, with the build that was traced.
type Build = (Vec<u8>, Vec<u8>);

/// Functions of a file: address in the file, session and address in the process.
type Wanted = Vec<(u64, (Uuid, u64))>;

impl SourcePlaces {
    /// Those of all functions of a trace whose files are here; says which are not.
    pub(crate) fn of(dump: &Dump) -> Self {
        let mut wanted: BTreeMap<Build, Wanted> = BTreeMap::new();
        for session in &dump.sessions {
            for function in session.schema.functions().all() {
                let Some(module) = session.schema.functions().module(function.module) else {
                    continue;
                };
                let at = function.address.wrapping_sub(module.base);
                let build = (module.path.clone(), module.build_id.clone());
                let id = (session.uuid, function.address);
                wanted.entry(build).or_default().push((at, id));
            }
        }
        let mut places = Self::default();
        for ((path, build_id), functions) in wanted {
            places.read(Path::new(OsStr::from_bytes(&path)), &build_id, &functions);
        }
        places
    }

    /// `path:line` of a function; `None`: it is not known.
    pub(crate) fn get(&self, session: &Session, function: &Function) -> Option<&str> {
        self.0
            .get(&(session.uuid, function.address))
            .map(String::as_str)
    }

    fn read(&mut self, path: &Path, build_id: &[u8], functions: &Wanted) {
        let why = match fs::read(path) {
            Err(error) => error.to_string(),
            Ok(file) if ringmark_movable::build_id(&file) != build_id => {
                "found a file of another build, expected the one that was traced".to_owned()
            }
            Ok(file) => {
                let missing = self.find(path, &file, functions);
                if missing == 0 {
                    return;
                }
                let functions = counted(missing as u64, "function");
                format!("no line of {functions}: expected a file built with -g, or its debug file")
            }
        };
        note(&printable(&format!("--srcline: {}: {why}", path.display())));
    }

    /// Finds the lines; returns how many functions have none.
    fn find(&mut self, path: &Path, file: &[u8], functions: &Wanted) -> usize {
        let debug = separate_file(path).and_then(|path| fs::read(path).ok());
        let addresses: Vec<_> = functions.iter().map(|(at, _)| *at).collect();
        let lines = ringmark_movable::source_lines(file, debug.as_deref(), &addresses);
        let mut missing = 0;
        for ((_, id), line) in functions.iter().zip(lines) {
            match line {
                Some(line) => drop(self.0.insert(*id, format!("{}:{}", line.path, line.line))),
                None => missing += 1,
            }
        }
        missing
    }
}
