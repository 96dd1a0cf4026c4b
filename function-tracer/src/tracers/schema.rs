//! The numbers of functions and function types, and the schema entries that say what they are.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;

use ringmark_format::attribute::{self, tag};
use ringmark_format::function::{
    DEFAULT, FunctionEntry, FunctionTypesEntry, LAST_NUMBER, ModuleEntry, TIMED, TRACERS_MAX,
    TracerEntry, TracerKind,
};
use ringmark_format::schema::{EntryHeader, entry_kind};
use zerocopy::IntoBytes;

use super::profile_cells::{Names, ProfileCells};
use crate::record::call_plan::{self, CallPlan};
use crate::sites::{Module, ModuleId, Site};

/// What is wanted of a function: by which tracers, and the index of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    function: u32,
    tracers: u64,
    plan: usize,
}

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
    modules: BTreeMap<ModuleId, u32>,
    functions: BTreeMap<(ModuleId, u32), u32>,
    types: BTreeMap<Key, u32>,
    /// What each type stands for, by the type's number.
    keys: Vec<Key>,
    next_type: u32,
    /// Each plan that was ever wanted, without repeats.
    plans: Vec<&'static CallPlan>,
    row: Option<Row>,
    entries: Vec<u8>,
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
        let key = Key {
            function,
            tracers,
            plan: self.plan(plan),
        };
        if let Some(number) = self.types.get(&key) {
            return Some(*number);
        }
        if self.next_type > LAST_NUMBER {
            return None;
        }
        let number = self.next_type;
        self.next_type += 1;
        call_plan::set(number, self.plans[key.plan]);
        if plan.profile {
            let names = || Names::of(module, site);
            self.profile_cells
                .describe(number, function, tracers, names);
        }
        self.types.insert(key, number);
        self.keys.push(key);
        if plan.record {
            self.lengthen_row(number, key);
        }
        Some(number)
    }

    /// Number of types.
    pub(crate) fn types(&self) -> u32 {
        self.next_type
    }

    /// What the type with this number stands for.
    pub(crate) fn wanted(&self, number: u32) -> Option<FunctionType> {
        let key = self.keys.get(number as usize)?;
        Some(FunctionType {
            tracers: key.tracers,
            function: key.function,
            plan: self.plans[key.plan],
        })
    }

    /// The index of a plan.
    fn plan(&mut self, plan: CallPlan) -> usize {
        match self.plans.iter().position(|known| **known == plan) {
            Some(place) => place,
            None => {
                self.plans.push(Box::leak(Box::new(plan)));
                self.plans.len() - 1
            }
        }
    }

    /// The number of a module.
    fn module(&mut self, module: &Module) -> u32 {
        if let Some(number) = self.modules.get(&module.id) {
            return *number;
        }
        let number = self.modules.len() as u32;
        self.modules.insert(module.id, number);
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
        if let Some(number) = self.functions.get(&(module.id, place)) {
            return *number;
        }
        let module_number = self.module(module);
        let number = self.functions.len() as u32;
        self.functions.insert((module.id, place), number);
        let function = module.functions.get(place as usize);
        let fixed = FunctionEntry {
            address: function.map_or(0, |f| f.address),
            bytes: function.map_or(0, |f| u32::try_from(f.size).unwrap_or(u32::MAX)),
            module: module_number,
        };
        let symbol = function.map_or(&[][..], |f| f.symbol.as_slice());
        let name = [(tag::NAME, symbol)];
        push(
            &mut self.entries,
            entry_kind::FUNCTION,
            number,
            fixed.as_bytes(),
            &name,
        );
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
        let is_timed = self.plans[key.plan].min_ticks.is_some();
        let fixed = FunctionTypesEntry {
            tracers: key.tracers,
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

    /// Takes the new entries, which must be in the schema before a record needs them.
    pub(crate) fn take_entries(&mut self) -> Vec<u8> {
        self.end_row();
        std::mem::take(&mut self.entries)
    }
}
