//! What the schema says about functions: modules, functions and function tracers.
//!
//! The type of a function record has no name of its own. It means one function, one thing that
//! happened to it, and the set of tracers that wanted the record ([`FunctionUse`]).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use ringmark_format::attribute::{Attributes, tag};
use ringmark_format::demangle::{demangled, readable};
use ringmark_format::function::{
    DEFAULT, FunctionEntry, FunctionType, FunctionTypesEntry, ModuleEntry, TIMED, TracerEntry,
    TracerKind,
};
use ringmark_format::schema::{EntryHeader, entry_kind};
use ringmark_format::{TypeId, align8};
use zerocopy::{FromBytes, Immutable, KnownLayout};

/// A program or shared object that was loaded.
#[derive(Debug, Clone)]
pub struct Module {
    /// Address at which it was loaded.
    pub base: u64,
    /// Size of its mapping in bytes.
    pub bytes: u64,
    /// Its path, as the program found it.
    pub path: Vec<u8>,
    /// Its GNU build id, raw bytes, or empty.
    pub build_id: Vec<u8>,
}

impl Module {
    /// The last part of its path, which output shows.
    #[must_use]
    pub fn file_name(&self) -> &[u8] {
        self.path.rsplit(|b| *b == b'/').next().unwrap_or(&[])
    }
}

/// A function that was traced.
#[derive(Debug, Clone)]
pub struct Function {
    /// Address of its first instruction in the process.
    pub address: u64,
    /// Size in bytes; 0: not known.
    pub bytes: u32,
    /// Id of its module, for [`Functions::module`].
    pub module: u32,
    /// Its name for output: demangled. A function without a symbol has its place,
    /// `module+0x11d0`.
    pub name: Vec<u8>,
    /// Its name in the symbol table, or empty.
    pub symbol: Vec<u8>,
    /// Its place among the functions of the session, from 0.
    pub(crate) place: usize,
}

/// A function tracer of the session.
#[derive(Debug, Clone)]
pub struct Tracer {
    /// Its name, as found.
    pub name: Vec<u8>,
    /// `None` for a number that this decoder does not know.
    pub kind: Option<TracerKind>,
    /// Whether commands that name no tracer mean this one.
    pub default: bool,
    /// The functions that it traces, as its user wrote them, or empty.
    pub filter: Vec<u8>,
}

/// What the type of a function record means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionUse {
    /// Id of the function, for [`Functions::function`].
    pub function: u32,
    /// Whether the record was written when the function was left; else, when it was entered.
    pub exit: bool,
    /// An entry with this set has no exit; an exit with it was unwound.
    pub loose: bool,
    /// Whether the exit carries the duration and no entry was written.
    pub timed: bool,
    /// Whether the call is on a stack that is not the thread's own: its slot is in the payload.
    pub has_slot: bool,
    /// Bit t: the tracer with number t wanted the record.
    pub tracers: u64,
    /// Place of the function: every record is looked up by it.
    place: usize,
}

impl FunctionUse {
    /// The kind of its records as output names it.
    pub(crate) const fn kind(&self) -> &'static str {
        match (self.exit, self.timed, self.loose) {
            (false, ..) => "function_entry",
            (true, _, true) => "function_unwound",
            (true, true, false) => "function_call",
            (true, false, false) => "function_exit",
        }
    }
}

/// Everything the schema of one session says about functions.
#[derive(Debug, Default)]
pub struct Functions {
    modules: BTreeMap<u32, Module>,
    /// In the order in which the schema describes them.
    functions: Vec<Function>,
    /// Their places, by id.
    places: HashMap<u32, usize>,
    /// Their places, by address.
    by_address: BTreeMap<u64, usize>,
    types: BTreeMap<u32, FunctionTypesEntry>,
    tracers: BTreeMap<u32, Tracer>,
}

/// The fixed part of an entry and its attributes.
fn parts<'e, T: FromBytes + KnownLayout + Immutable>(
    header: &EntryHeader,
    body: &'e [u8],
) -> Result<(T, Attributes<'e>), &'static str> {
    let (fixed, _) = T::read_from_prefix(body).map_err(|_| "fixed part of an entry too short")?;
    let attributes = body
        .get(align8(header.fixed_bytes.into())..)
        .ok_or("attributes start after the entry's end")?;
    Ok((fixed, Attributes::new(attributes)))
}

/// Longest path, symbol and other text.
const TEXT_BYTES_MAX: usize = 16 << 10;

fn text(attributes: &Attributes<'_>, tag: u16) -> Result<Vec<u8>, &'static str> {
    let found = attributes.clone().find(tag).unwrap_or_default();
    if found.len() > TEXT_BYTES_MAX {
        return Err("a text of more than 16384 bytes");
    }
    Ok(found.to_vec())
}

impl Functions {
    /// Takes a schema entry. The first of two entries with one id counts. Entries that do not
    /// describe functions are passed over.
    pub(crate) fn take(&mut self, header: &EntryHeader, body: &[u8]) -> Result<(), &'static str> {
        let id = header.id;
        match header.kind {
            entry_kind::MODULE => {
                let (entry, attributes) = parts::<ModuleEntry>(header, body)?;
                let module = Module {
                    base: entry.base,
                    bytes: entry.bytes,
                    path: text(&attributes, tag::NAME)?,
                    build_id: text(&attributes, tag::BUILD_ID)?,
                };
                self.modules.entry(id).or_insert(module);
            }
            entry_kind::FUNCTION => {
                let (entry, attributes) = parts::<FunctionEntry>(header, body)?;
                self.take_function(id, &entry, text(&attributes, tag::NAME)?);
            }
            entry_kind::FUNCTION_TYPES => {
                let (entry, _) = parts::<FunctionTypesEntry>(header, body)?;
                self.types.entry(id).or_insert(entry);
            }
            entry_kind::TRACER => {
                let (entry, attributes) = parts::<TracerEntry>(header, body)?;
                let tracer = Tracer {
                    name: text(&attributes, tag::NAME)?,
                    kind: TracerKind::from_u8(entry.kind),
                    default: entry.flags & DEFAULT != 0,
                    filter: text(&attributes, tag::FILTER)?,
                };
                self.tracers.entry(id).or_insert(tracer);
            }
            _ => {}
        }
        Ok(())
    }

    fn take_function(&mut self, id: u32, entry: &FunctionEntry, symbol: Vec<u8>) {
        let place = self.functions.len();
        match self.places.entry(id) {
            Entry::Occupied(_) => return,
            Entry::Vacant(new) => new.insert(place),
        };
        self.by_address.insert(entry.address, place);
        let name = match self.modules.get(&entry.module) {
            Some(module) => {
                let offset = entry.address.wrapping_sub(module.base);
                readable(&symbol, module.file_name(), offset).into_owned()
            }
            None if symbol.is_empty() => format!("{:#x}", entry.address).into_bytes(),
            None => demangled(&symbol).into_owned(),
        };
        let function = Function {
            address: entry.address,
            bytes: entry.bytes,
            module: entry.module,
            name,
            symbol,
            place,
        };
        self.functions.push(function);
    }

    /// What the type with this id means; `None`: it is no function type, or not described.
    #[must_use]
    pub fn meaning(&self, id: TypeId) -> Option<FunctionUse> {
        let ty = FunctionType::unpack(id.0)?;
        let (first, entry) = self.types.range(..=ty.number).next_back()?;
        let number = ty.number - first;
        let function = entry.first_function.checked_add(number)?;
        let place = *self.places.get(&function)?;
        (number < entry.count).then_some(FunctionUse {
            function,
            exit: ty.exit,
            loose: ty.loose,
            timed: entry.flags & TIMED != 0,
            has_slot: ty.has_slot,
            tracers: entry.tracers,
            place,
        })
    }

    /// The functions that are described, in the order in which they were.
    #[must_use]
    pub fn all(&self) -> &[Function] {
        &self.functions
    }

    /// How many functions are described.
    pub(crate) fn len(&self) -> usize {
        self.functions.len()
    }

    /// The function with this id.
    #[must_use]
    pub fn function(&self, id: u32) -> Option<&Function> {
        self.functions.get(*self.places.get(&id)?)
    }

    /// The function of a record whose type means this.
    #[must_use]
    #[inline]
    pub fn of_use(&self, meaning: &FunctionUse) -> Option<&Function> {
        self.functions.get(meaning.place)
    }

    /// The module with this id.
    #[must_use]
    pub fn module(&self, id: u32) -> Option<&Module> {
        self.modules.get(&id)
    }

    /// The traced function that `address` of the process lies in; `None`: none that is described.
    #[must_use]
    pub fn function_at(&self, address: u64) -> Option<&Function> {
        let (start, place) = self.by_address.range(..=address).next_back()?;
        let function = self.functions.get(*place)?;
        (address - start < u64::from(function.bytes)).then_some(function)
    }

    /// The module that `address` of the process lies in; the one loaded last, if several do.
    #[must_use]
    pub fn module_at(&self, address: u64) -> Option<&Module> {
        let mut latest_first = self.modules.values().rev();
        latest_first.find(|m| {
            address
                .checked_sub(m.base)
                .is_some_and(|place| place < m.bytes)
        })
    }

    /// Whether one of these tracers records the ends of calls. `tracers` has bit t for the tracer
    /// with number t. Tracers of kind `function` record entries only.
    #[must_use]
    pub fn want_ends(&self, tracers: u64) -> bool {
        let mut meant = self.tracers.iter().filter(|(number, _)| {
            let bit = 1_u64.checked_shl(**number);
            bit.is_some_and(|bit| tracers & bit != 0)
        });
        meant.any(|(_, tracer)| tracer.kind != Some(TracerKind::Function))
    }

    /// The tracers by their number in the session, which is their bit in
    /// [`FunctionUse::tracers`].
    pub fn tracers(&self) -> impl Iterator<Item = (u32, &Tracer)> {
        self.tracers
            .iter()
            .map(|(number, tracer)| (*number, tracer))
    }
}
