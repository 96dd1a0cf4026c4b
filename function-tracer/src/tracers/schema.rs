//! The numbers of functions and function types, and the schema entries that say what they are.

use std::os::unix::ffi::OsStrExt;

use ringmark_format::attribute::{self, tag};
use ringmark_format::function::{
    DEFAULT, FunctionEntry, FunctionTypesEntry, LAST_NUMBER, ModuleEntry, TIMED, TRACERS_MAX,
    TracerEntry, TracerKind,
};
use ringmark_format::schema::{EntryHeader, entry_kind};
use zerocopy::IntoBytes;

use super::numbered_modules::{NONE, NumberedModules};
use super::profile_cells::{CountedFunction, Names, ProfileCells};
use crate::record::call_plan::{self, CallPlan};
use crate::sites::{Module, ModuleId, Site};

/// What is wanted of some functions: by which tracers, and the index of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Wish {
    tracers: u64,
    plan: u32,
}

/// What is wanted of a function: the index of the wish, because hundreds of thousands of functions have
/// few of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Key {
    function: u32,
    wish: u32,
}

/// A type, and the number of one that the same function got before it, or [`NONE`].
#[derive(Debug, Clone, Copy)]
struct NumberedType {
    key: Key,
    before: u32,
}

/// Bytes of entries that are put into the schema together.
const ENTRIES_BYTES: usize = 256 << 10;

/// A function type: its function, the tracers that want its records, and what is done with its
/// calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FunctionType {
    pub(crate) tracers: u64,
    pub(crate) function: u32,
    pub(crate) plan: &'static CallPlan,
}

/// New types with successive numbers, of functions with successive numbers, with the same tracers
/// and plan.
#[derive(Debug)]
struct Row {
    first: u32,
    key: Key,
    count: u32,
}

/// Numbers of modules, functions and function types, and entries that are not in the schema yet.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    modules: NumberedModules,
    /// By a function's number: the number of its last type or [`NONE`].
    last_types: Vec<u32>,
    /// By a type's number.
    types: Vec<NumberedType>,
    /// Each plan that was ever wanted, without repeats.
    plans: Vec<&'static CallPlan>,
    /// Each wish that a type has, without repeats.
    wishes: Vec<Wish>,
    row: Option<Row>,
    entries: Vec<u8>,
    /// Whether entries found no room in the schema since [`Numbers::describe`] was called last.
    is_schema_full: bool,
    pub(super) profile_cells: ProfileCells,
}

/// Appends an entry of the schema to `out`.
fn push(out: &mut Vec<u8>, kind: u16, id: u32, fixed: &[u8], attributes: &[(u16, &[u8])]) {
    let start = out.len();
    let header = EntryHeader {
        bytes: 0,
        kind,
        fixed_bytes: fixed.len() as u16,
        id,
        reserved: 0,
    };
    out.extend_from_slice(header.as_bytes());
    out.extend_from_slice(fixed);
    for (tag, value) in attributes {
        attribute::push(out, *tag, value);
    }
    let bytes = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&bytes.to_le_bytes());
}

impl Numbers {
    /// Adds the entry of a tracer.
    pub(crate) fn tracer(
        &mut self,
        number: u32,
        kind: TracerKind,
        default: bool,
        name: &str,
        filter: &str,
    ) {
        debug_assert!(number < TRACERS_MAX);
        let fixed = TracerEntry {
            kind: kind as u8,
            flags: if default { DEFAULT } else { 0 },
            reserved: 0,
            reserved_word: 0,
        };
        let attributes: [(u16, &[u8]); 2] = [
            (tag::NAME, name.as_bytes()),
            (tag::FILTER, filter.as_bytes()),
        ];
        push(
            &mut self.entries,
            entry_kind::TRACER,
            number,
            fixed.as_bytes(),
            &attributes,
        );
    }

    /// The number of the type for the function of `site`, which `tracers` want with `plan`. `None`:
    /// all numbers are used.
    pub(crate) fn function_type(
        &mut self,
        module: &Module,
        site: &Site,
        tracers: u64,
        plan: CallPlan,
    ) -> Option<u32> {
        let function = self.function(module, site.function);
        let wish = Wish {
            tracers,
            plan: self.plan(plan),
        };
        let key = Key {
            function,
            wish: self.wish(wish),
        };
        if let Some(number) = self.type_of(key) {
            return Some(number);
        }
        let number = self.types();
        if number > LAST_NUMBER {
            return None;
        }
        call_plan::set(number, wish.plan);
        if plan.profile {
            let counted = CountedFunction {
                number: function,
                before: self.modules.function_before(module.id, site.function),
                names: || Names::of(module, site),
            };
            self.profile_cells.describe(number, tracers, &counted);
        }
        let last = &mut self.last_types[function as usize];
        let before = std::mem::replace(last, number);
        self.types.push(NumberedType { key, before });
        if plan.record {
            self.lengthen_row(number, key);
        }
        Some(number)
    }

    /// Makes room for a type for each function of this module, because room that is made little by
    /// little leaves holes in the program's heap.
    pub(crate) fn reserve(&mut self, module: &Module) {
        let functions = module.functions.len();
        if self.types.capacity() - self.types.len() < functions {
            self.types.reserve_exact(functions);
            self.last_types.reserve_exact(functions);
        }
    }

    /// The type that has this key. A function has few types.
    fn type_of(&self, key: Key) -> Option<u32> {
        let mut number = *self.last_types.get(key.function as usize)?;
        while let Some(found) = self.types.get(number as usize) {
            if found.key == key {
                return Some(number);
            }
            number = found.before;
        }
        None
    }

    /// Number of types.
    pub(crate) fn types(&self) -> u32 {
        self.types.len() as u32 // Never more than there are numbers.
    }

    /// What the type with this number stands for.
    pub(crate) fn wanted(&self, number: u32) -> Option<FunctionType> {
        let NumberedType { key, .. } = self.types.get(number as usize)?;
        let wish = self.wishes[key.wish as usize];
        Some(FunctionType {
            tracers: wish.tracers,
            function: key.function,
            plan: self.plans[wish.plan as usize],
        })
    }

    /// The index of a plan.
    fn plan(&mut self, plan: CallPlan) -> u32 {
        let known = self.plans.iter().position(|known| **known == plan);
        let place = known.unwrap_or_else(|| {
            let place = self.plans.len();
            let plan = Box::leak(Box::new(plan));
            call_plan::add(place as u32, plan);
            self.plans.push(plan);
            place
        });
        place as u32 // There are fewer plans than types.
    }

    /// The index of a wish. The latest are the most likely.
    fn wish(&mut self, wish: Wish) -> u32 {
        let known = self.wishes.iter().rposition(|known| *known == wish);
        let place = known.unwrap_or_else(|| {
            self.wishes.push(wish);
            self.wishes.len() - 1
        });
        place as u32 // There are fewer wishes than types.
    }

    /// The number of a module.
    fn module(&mut self, module: &Module) -> u32 {
        let (number, is_new) = self.modules.module(module);
        if !is_new {
            return number;
        }
        let range = module.range();
        let fixed = ModuleEntry {
            base: module.base,
            bytes: range.end.saturating_sub(module.base),
        };
        let path = module.path.as_os_str().as_bytes();
        let attributes = [
            (tag::NAME, path),
            (tag::BUILD_ID, module.build_id.as_slice()),
        ];
        push(
            &mut self.entries,
            entry_kind::MODULE,
            number,
            fixed.as_bytes(),
            &attributes,
        );
        number
    }

    /// The number of the function at this place in its module.
    fn function(&mut self, module: &Module, place: u32) -> u32 {
        let module_number = self.module(module);
        let number = self.last_types.len() as u32;
        match self.modules.function(module, place) {
            Some(known) if *known != NONE => return *known,
            Some(known) => *known = number,
            None => {}
        }
        self.last_types.push(NONE);
        let function = module.functions.get(place as usize);
        let fixed = FunctionEntry {
            address: function.map_or(0, |f| f.address),
            bytes: function.map_or(0, |f| f.size),
            module: module_number,
        };
        let symbol = function.map_or(&[][..], |f| &*f.symbol);
        let name = [(tag::NAME, symbol)];
        push(
            &mut self.entries,
            entry_kind::FUNCTION,
            number,
            fixed.as_bytes(),
            &name,
        );
        if self.entries.len() > ENTRIES_BYTES {
            self.append();
        }
        number
    }

    /// Adds a type to the row if it continues it, else begins a new row. A row is one entry.
    fn lengthen_row(&mut self, number: u32, key: Key) {
        if let Some(row) = &mut self.row {
            let next = Key {
                function: row.key.function + row.count,
                ..row.key
            };
            if number == row.first + row.count && key == next {
                row.count += 1;
                return;
            }
        }
        self.end_row();
        self.row = Some(Row {
            first: number,
            key,
            count: 1,
        });
    }

    /// Adds the entry of the row, if there is one.
    fn end_row(&mut self) {
        let Some(Row { first, key, count }) = self.row.take() else {
            return;
        };
        let Wish { tracers, plan } = self.wishes[key.wish as usize];
        let is_timed = self.plans[plan as usize].min_ticks.is_some();
        let fixed = FunctionTypesEntry {
            tracers,
            first_function: key.function,
            count,
            flags: if is_timed { TIMED } else { 0 },
            reserved: 0,
        };
        push(
            &mut self.entries,
            entry_kind::FUNCTION_TYPES,
            first,
            fixed.as_bytes(),
            &[],
        );
    }

    /// Puts the new entries into the schema, which must be done before a record needs them. `false`:
    /// there was no room for some.
    pub(crate) fn describe(&mut self) -> bool {
        self.end_row();
        self.append();
        !std::mem::take(&mut self.is_schema_full)
    }

    fn append(&mut self) {
        let entries = &self.entries;
        let fits = entries.is_empty() || ringmark::client::append_schema(entries);
        self.is_schema_full |= !fits;
        self.entries.clear();
    }

    /// Forgets modules that are not among these. Their numbers are not used again.
    pub(crate) fn keep(&mut self, is_there: impl Fn(ModuleId) -> bool) {
        self.modules.keep(is_there);
    }
}
