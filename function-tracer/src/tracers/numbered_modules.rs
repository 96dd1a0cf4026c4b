//! The numbers of modules and their functions. A module that is loaded again gets new ones, because it
//! may lie elsewhere; what profiles have counted goes on under them.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::sites::{Module, ModuleId};

/// No number.
pub(super) const NONE: u32 = u32::MAX;

/// Numbers of modules that have one, and of their functions.
#[derive(Debug, Default)]
pub(super) struct NumberedModules {
    modules: BTreeMap<ModuleId, NumberedModule>,
    /// Those that were unloaded, each file once.
    gone: Vec<NumberedModule>,
    next: u32,
}

/// A module that has a number. Its file tells it from others when it is unloaded and loaded again: path,
/// build id and number of functions.
#[derive(Debug)]
struct NumberedModule {
    number: u32,
    path: PathBuf,
    build_id: Vec<u8>,
    /// Where its first function begins in the file: tables of moved sites of one file differ.
    first: u64,
    /// By a function's place in the module: its number or [`NONE`].
    functions: Vec<u32>,
    /// The same, when the module was loaded before; empty if it was not.
    before: Vec<u32>,
}

impl NumberedModule {
    fn new(module: &Module, number: u32) -> Self {
        Self {
            number,
            path: module.path.clone(),
            build_id: module.build_id.clone(),
            first: match module
                .functions
                .first()
                .filter(|_| !module.moved.is_empty())
            {
                Some(function) => function.address.wrapping_sub(module.base),
                None => 0,
            },
            functions: vec![NONE; module.functions.len()],
            before: Vec::new(),
        }
    }

    /// Whether both are loads of one file. Modules without a build id are compared by path and number of
    /// functions alone.
    fn is_same_file(&self, other: &Self) -> bool {
        let functions = |module: &Self| module.functions.len();
        self.path == other.path
            && self.build_id == other.build_id
            && self.first == other.first
            && functions(self) == functions(other)
    }
}

impl NumberedModules {
    /// The number of a module, and whether it is new.
    pub(super) fn module(&mut self, module: &Module) -> (u32, bool) {
        let before = self.next;
        let number = self.numbered(module).number;
        (number, self.next != before)
    }

    /// The entry of a module, made if it has none. It takes over the functions of a module that was
    /// unloaded, if that was the same file.
    fn numbered(&mut self, module: &Module) -> &mut NumberedModule {
        let Self {
            modules,
            gone,
            next,
        } = self;
        modules.entry(module.id).or_insert_with(|| {
            let mut new = NumberedModule::new(module, *next);
            *next += 1;
            if let Some(at) = gone.iter().position(|before| before.is_same_file(&new)) {
                new.before = gone.swap_remove(at).functions;
            }
            new
        })
    }

    /// Where the number of the function at this place is noted; `None`: there is no such place.
    pub(super) fn function(&mut self, module: &Module, place: u32) -> Option<&mut u32> {
        self.numbered(module).functions.get_mut(place as usize)
    }

    /// The number that the function at this place had when the module was loaded before.
    pub(super) fn function_before(&self, module: ModuleId, place: u32) -> Option<u32> {
        let before = self.modules.get(&module)?.before.get(place as usize)?;
        (*before != NONE).then_some(*before)
    }

    /// Notes that modules which are not among these were unloaded. Their numbers are not used again.
    pub(super) fn keep(&mut self, is_there: impl Fn(ModuleId) -> bool) {
        let unloaded = self.modules.keys().copied().filter(|id| !is_there(*id));
        let unloaded: Vec<_> = unloaded.collect();
        for module in unloaded.iter().filter_map(|id| self.modules.remove(id)) {
            self.gone.retain(|other| !other.is_same_file(&module));
            self.gone.push(module);
        }
    }
}
