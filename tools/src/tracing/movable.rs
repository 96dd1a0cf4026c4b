//! Functions that can be traced where their compiler left no patch site: those of a file, with their names.

use std::collections::BTreeSet;
use std::path::Path;

use ringmark_console::Failure;
use ringmark_function_tracer::selection::Candidate;
use ringmark_function_tracer::sites::{debug_file, handing_on, readable};
use ringmark_movable::{Form, Function, Refusal};

use super::mapped;

/// Why a function cannot be traced that begins with a call.
const BEGINS_WITH_CALL: &str = "it calls within the bytes that a jump would replace";

/// The functions of one file.
#[derive(Debug)]
pub(crate) struct MovableFile {
    /// File name of the module.
    module: Vec<u8>,
    build_id: Vec<u8>,
    functions: Vec<Function>,
    /// Functions that may end in a jump to one that asks who called it.
    handing_on: BTreeSet<u64>,
}

impl MovableFile {
    /// Reads the file at `path`, of the module whose path in its process is `module`.
    ///
    /// # Errors
    /// It cannot be read, or none of its functions may be touched.
    pub(crate) fn read(path: &Path, module: &Path) -> Result<Self, Failure> {
        let failed = |text: String| Failure::unreadable(format!("{}: {text}", module.display()));
        let bytes = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
        let debug = debug_file(path).and_then(|path| std::fs::read(path).ok());
        let functions = ringmark_movable::functions(&bytes, debug.as_deref());
        let functions = functions.map_err(|error| failed(error.to_string()))?;
        let name = module.file_name().unwrap_or_default();
        Ok(Self {
            module: name.as_encoded_bytes().to_vec(),
            build_id: ringmark_movable::build_id(&bytes).to_vec(),
            functions,
            handing_on: handing_on(path).map_err(|error| failed(error.to_string()))?,
        })
    }

    /// Its build id; empty where it has none.
    pub(crate) fn build_id(&self) -> &[u8] {
        &self.build_id
    }

    /// Its functions, and places that look like one.
    pub(crate) fn functions(&self) -> impl Iterator<Item = MovableFunction<'_>> {
        let of = |function| MovableFunction {
            file: self,
            function,
        };
        self.functions.iter().map(of)
    }
}

/// A function of such a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MovableFunction<'f> {
    file: &'f MovableFile,
    pub(crate) function: &'f Function,
}

impl<'f> MovableFunction<'f> {
    /// What selections ask, by each of its names; one without a name has its place for one.
    pub(crate) fn candidates(self) -> impl Iterator<Item = Candidate<'f>> {
        const NONE: &[u8] = b"";
        let nameless = self.function.names.is_empty().then_some(NONE);
        let names = self.function.names.iter().map(Vec::as_slice);
        names.chain(nameless).map(move |symbol| Candidate {
            symbol,
            module: &self.file.module,
            bytes: self.function.size,
            offset: self.function.at,
        })
    }

    /// Its name for people.
    pub(crate) fn name(self) -> String {
        let symbol = self.function.names.first().map_or(&[][..], Vec::as_slice);
        readable(symbol, &self.file.module, self.function.at).into_owned()
    }

    /// Whether it is a function at all, and not a part of one or what the linker or the kernel put there.
    pub(crate) fn is_function(self) -> bool {
        !matches!(
            self.function.judged,
            Err(Refusal::NotCalled | Refusal::Part | Refusal::Signal | Refusal::Inside { .. })
        )
    }

    /// Whether a pattern may mean it: the linker's own startup code has no unwind entry, or no caller.
    pub(crate) fn may_be_meant(self) -> bool {
        !matches!(
            self.function.judged,
            Err(Refusal::NoFrame | Refusal::Outermost | Refusal::Resolver)
        )
    }

    /// Why it cannot be traced; `None`: it can.
    pub(crate) fn refusal(self) -> Option<String> {
        match &self.function.judged {
            Ok(movable) if movable.form == Form::Call => Some(BEGINS_WITH_CALL.to_owned()),
            Ok(_) => None,
            Err(refusal) => Some(refusal.to_string()),
        }
    }

    /// Whether the ends of its calls cannot be seen.
    pub(crate) fn keeps_return_address(self) -> bool {
        let function = self.function;
        function.keeps_return_address || self.file.handing_on.contains(&function.at)
    }
}

/// Whether a function of the program of this process can be traced so.
pub(crate) fn has_any(pid: u32) -> bool {
    let program = mapped::files(pid).into_iter().find(|file| file.is_program);
    let movable = program.and_then(|file| MovableFile::read(&file.path, &file.module).ok());
    movable.is_some_and(|file| {
        file.functions()
            .any(|function| function.refusal().is_none())
    })
}
