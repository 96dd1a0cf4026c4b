//! From table entries to patch sites. An entry is a site when the bytes in memory are those of a
//! site and a function begins there.
//!
//! | situation of an entry | result |
//! | --- | --- |
//! | it leads to NOPs, a call or a sled, in a function that is known | a site |
//! | it leads outside the executable segments of its module | [`Reason::Outside`] |
//! | all entries of a module do so: the loader has not relocated its code and tables yet | another look later |
//! | no symbol or unwind entry begins there | [`Reason::NoFunction`] |
//! | it lies inside a function whose return address the unwind table does not place | [`Reason::NoFrame`] |
//! | its bytes are others: another tool changed them, or another compiler wrote them | [`Reason::Code`] |
//! | its file was replaced, removed or cannot be read | [`Reason::File`] |

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::elf::{self, Contents, Parts, Relocation};
use super::exits;
use super::file_error::FileError;
use super::loader::{Held, Loaded, Segment};
use super::maps::{self, Mapping};
use super::module::{Function, Module, ModuleId, Reason, Refused, Site, SiteId, SiteKind};
use super::names::SymbolName;
use super::symbol::Symbol;
use super::table_entries::{self, TableEntry};
use super::unwind_table::FunctionFrame;
use crate::arch::{self, Form, Origin};

/// Bytes of NOPs in front of a function that are passed over at most.
const IN_FRONT_MAX: u64 = 64;
const ENDBR64_BYTES: u64 = 4;
/// Name of the memfd of an object that the loader maps for trampolines.
pub(crate) const TRAMPOLINES: &str = "ringmark-trampolines";
/// Path of the memfd that `ringmark trace start -p` loads this object from in a container.
const OWN_COPY: &[u8] = b"/memfd:libringmark_functions.so";

/// A module and what its file says, before the comparison with memory.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) loaded: Loaded,
    pub(crate) path: PathBuf,
    contents: Result<Contents, FileError>,
}

/// Finds and reads the file of a module. `None`: it has none, as the kernel's own module.
pub(crate) fn draft(loaded: Loaded, mappings: &[Mapping], is_program: bool) -> Option<Draft> {
    let text = loaded
        .segments
        .iter()
        .find(|segment| segment.is_executable)?;
    let mapping = maps::find(mappings, text.start);
    let path = mapping
        .map_or(loaded.name.as_path(), |mapping| mapping.path.as_path())
        .to_path_buf();
    if !path.has_root() || is_own(&path) {
        return None;
    }
    let contents = if is_program {
        // This name leads to the file that runs, whatever became of its path.
        elf::read(Path::new("/proc/self/exe"), Relocation::Done)
    } else if mapping.is_some_and(|mapping| mapping.is_deleted) {
        Err(FileError::Replaced)
    } else {
        elf::read(&path, Relocation::Unknown)
    };
    Some(Draft {
        loaded,
        path,
        contents,
    })
}

/// Whether a mapping is of this library: its own object, loaded from a copy without a name, or its trampolines.
fn is_own(path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let memfd = path.strip_prefix(b"/memfd:");
    path.starts_with(OWN_COPY) || memfd.is_some_and(|name| name.starts_with(TRAMPOLINES.as_bytes()))
}

impl Draft {
    /// Whether the file has a table of sites, or could not be read.
    pub(crate) fn is_of_interest(&self) -> bool {
        self.contents.as_ref().map_or(true, Contents::has_tables)
    }

    /// The module with its sites, numbered from `next` on. The flag says whether the loader has
    /// relocated its tables.
    pub(crate) fn module(self, held: &Held<'_>, id: ModuleId, next: u32) -> (Module, bool) {
        let Loaded {
            base,
            segments,
            notes,
            headers,
            ..
        } = self.loaded;
        let mut module = Module {
            id,
            path: self.path,
            base,
            build_id: Vec::new(),
            functions: Vec::new(),
            sites: Vec::new(),
            refused: Vec::new(),
            moved: Vec::new(),
            is_program: false,
            is_beside_sites: false,
            segments,
        };
        let contents = match self.contents {
            Ok(contents) => contents,
            Err(error) => {
                module.refuse_file(error);
                return (module, true);
            }
        };
        let build_id = memory_build_id(held, &module.segments, &notes);
        if !contents.is_of(&headers, build_id.as_deref()) {
            module.refuse_file(FileError::OtherFile);
            return (module, true);
        }
        module.build_id.clone_from(&contents.build_id);
        let mut found = Found::default();
        for table in &contents.tables {
            let at = module.base.wrapping_add(table.at);
            let length = usize::try_from(table.length).unwrap_or(usize::MAX);
            let Some(mut bytes) = held.read(&module.segments, at, length) else {
                module.refuse(at, Reason::TableNotInMemory);
                continue;
            };
            contents.relocate(table, module.base, &mut bytes);
            found
                .sites
                .reserve_exact(table_entries::count(table.kind, length));
            let check = EntryCheck {
                held,
                contents: &contents,
                module: &module,
            };
            for entry in table_entries::entries(*table, at, &bytes) {
                ringmark::__private::helper::working();
                found.add(&entry, check.at(&entry));
            }
        }
        let is_ready = module.take(found, next, &contents);
        (module, is_ready)
    }
}

/// The build id in the module's notes: name "GNU", type 3.
pub(super) fn memory_build_id(
    held: &Held<'_>,
    segments: &[Segment],
    notes: &[(u64, u64)],
) -> Option<Vec<u8>> {
    const BUILD_ID: u32 = 3;
    let word = |bytes: &[u8], at: usize| {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(word))
    };
    for (at, length) in notes {
        let bytes = held.read(segments, *at, usize::try_from(*length).ok()?)?;
        let mut note = bytes.as_slice();
        while let (Some(name), Some(content), Some(kind)) =
            (word(note, 0), word(note, 4), word(note, 8))
        {
            let (name, content) = (name as usize, content as usize);
            let from = 12 + name.next_multiple_of(4);
            let found = note.get(from..from.checked_add(content)?);
            if kind == BUILD_ID && note.get(12..16) == Some(b"GNU\0") {
                return found.map(<[u8]>::to_vec);
            }
            note = note
                .get(from.checked_add(content.checked_next_multiple_of(4)?)?..)
                .unwrap_or_default();
        }
    }
    None
}

/// An entry that is a patch site.
struct Believed {
    address: u64,
    kind: SiteKind,
    form: Form,
    /// Where its function begins.
    function: u64,
}

/// An entry that is no patch site.
enum NoSite {
    /// The reason, and the name of its function.
    Refused { symbol: Vec<u8>, reason: Reason },
    /// An exit where the function, which begins here, may go on. It is traced as one without sites at its exits.
    NoExit { function: u64 },
}

impl From<Reason> for NoSite {
    fn from(reason: Reason) -> Self {
        let symbol = Vec::new();
        Self::Refused { symbol, reason }
    }
}

type Judged = Result<Believed, NoSite>;

/// What became of the entries of a module.
#[derive(Default)]
struct Found {
    sites: Vec<Believed>,
    refused: Vec<Refused>,
    /// Functions of the exits among those, see [`exits::mark`].
    refused_exits: Vec<Option<u64>>,
    /// Number of entries that lead outside the module.
    outside: usize,
}

impl Found {
    fn add(&mut self, entry: &TableEntry, judged: Judged) {
        match judged {
            Ok(site) => self.sites.push(site),
            Err(NoSite::NoExit { function }) => self.refused_exits.push(Some(function)),
            Err(NoSite::Refused { symbol, reason }) => {
                if entry.kind != SiteKind::Entry {
                    self.refused_exits.push(entry.function);
                }
                self.outside += usize::from(matches!(reason, Reason::Outside));
                let address = entry.at;
                self.refused.push(Refused {
                    address,
                    symbol,
                    reason,
                });
            }
        }
    }

    /// Whether every entry leads outside the module, because the loader has not relocated the table
    /// yet.
    fn is_outside(&self) -> bool {
        self.outside > 0 && self.sites.is_empty() && self.outside == self.refused.len()
    }
}

/// Decides which entries of a module are sites.
struct EntryCheck<'a> {
    held: &'a Held<'a>,
    contents: &'a Contents,
    module: &'a Module,
}

impl EntryCheck<'_> {
    fn at(&self, entry: &TableEntry) -> Judged {
        let segments = self.module.segments.iter();
        let text = segments
            .filter(|segment| segment.is_executable)
            .find(|segment| segment.holds(entry.at, 1));
        let text = text.ok_or(Reason::Outside)?;
        let from = entry.at.saturating_sub(ENDBR64_BYTES).max(text.start);
        let length = (text.end - from).min(IN_FRONT_MAX + 2 * arch::CODE_BYTES_MAX as u64);
        let mut code = [0; IN_FRONT_MAX as usize + 2 * arch::CODE_BYTES_MAX];
        let code = &mut code[..length as usize];
        if !self.held.read_into(&self.module.segments, from, code) {
            return Err(Reason::Outside.into());
        }
        let code = &*code;
        let around = self.around(entry)?;
        let start = entry.function.or(around.map(|frame| frame.start));
        let (address, function) = match start.or_else(|| self.around_exit(entry)) {
            Some(function) => (entry.at, function),
            None if entry.kind != SiteKind::Entry => return Err(Reason::NoFunction.into()),
            None => self
                .entry_of_function(entry, from, code)
                .ok_or(Reason::NoFunction)?,
        };
        let offset = usize::try_from(address - from).unwrap_or(usize::MAX);
        let bytes = code.get(offset..).unwrap_or_default();
        let form = arch::read(bytes, address, entry.origin).map_err(|unfit| NoSite::Refused {
            symbol: name(
                self.contents
                    .symbol(function.wrapping_sub(self.module.base)),
            ),
            reason: unfit.into(),
        })?;
        let form = around.map_or(form, |frame| form.inside(frame.return_place));
        let rest = bytes.get(form.length()..).unwrap_or_default();
        let kind = exit_kind(entry.kind, rest).ok_or(NoSite::NoExit { function })?;
        Ok(Believed {
            address,
            kind,
            form,
            function,
        })
    }

    /// The function around a site inside it, by address in memory; `None` for other sites.
    fn around(&self, entry: &TableEntry) -> Result<Option<FunctionFrame>, NoSite> {
        if entry.origin != Origin::Inside {
            return Ok(None);
        }
        let in_file = entry.at.wrapping_sub(self.module.base);
        let unwind_table = self.contents.unwind_table.as_ref();
        let found = unwind_table.and_then(|table| table.around(in_file));
        let frame = found.ok_or_else(|| NoSite::Refused {
            symbol: name(self.contents.symbol_around(in_file)),
            reason: Reason::NoFrame,
        })?;
        Ok(Some(FunctionFrame {
            start: self.module.base.wrapping_add(frame.start),
            ..frame
        }))
    }

    /// Where the function begins that an exit lies in.
    fn around_exit(&self, entry: &TableEntry) -> Option<u64> {
        let base = self.module.base;
        let symbol = self.contents.symbol_around(entry.at.wrapping_sub(base));
        let symbol = symbol.filter(|_| entry.kind != SiteKind::Entry)?;
        Some(base.wrapping_add(symbol.at))
    }

    /// Addresses of the site and of its function. The function begins at the entry, just before it
    /// with `endbr64` between, or after NOPs that are never executed.
    fn entry_of_function(&self, entry: &TableEntry, from: u64, code: &[u8]) -> Option<(u64, u64)> {
        let base = self.module.base;
        let in_file = entry.at.wrapping_sub(base);
        let next = self.contents.symbol_after(in_file).map(|symbol| symbol.at);
        let next =
            next.filter(|at| at - in_file <= IN_FRONT_MAX && entry.origin == Origin::Patchable);
        let starts = [Some(in_file), in_file.checked_sub(ENDBR64_BYTES)];
        let known = starts
            .into_iter()
            .flatten()
            .filter(|at| self.contents.symbol(*at).is_some());
        known.chain(next).find_map(|start| {
            let function = base.wrapping_add(start);
            let offset = |at: u64| usize::try_from(at.checked_sub(from)?).ok();
            let site = arch::lands_on_entry(code, offset(entry.at)?, offset(function)?)?;
            Some((from + site as u64, function))
        })
    }
}

/// What a site stands in front of, by the code after it. `None`: neither a return nor a jump that always leaves
/// the function, so that what the function has in flags and below its stack pointer may be in use.
fn exit_kind(kind: SiteKind, after: &[u8]) -> Option<SiteKind> {
    match kind {
        SiteKind::BeforeReturn if arch::is_return(after) => Some(kind),
        SiteKind::BeforeReturn | SiteKind::TailExit => {
            arch::always_jumps(after).then_some(SiteKind::TailExit)
        }
        SiteKind::Entry | SiteKind::Exit => Some(kind),
    }
}

/// The form of any site.
#[cfg(test)]
pub(super) fn any_form() -> Form {
    let nops = [0x0f, 0x1f, 0x44, 0, 0, 0xc3];
    arch::read(&nops, 0, Origin::Patchable).expect("a NOP of five bytes")
}

fn name(symbol: Option<&Symbol>) -> Vec<u8> {
    symbol
        .map(|symbol| symbol.name.to_vec())
        .unwrap_or_default()
}

impl Module {
    fn refuse_file(&mut self, source: FileError) {
        let path = self.path.clone();
        self.refuse(self.base, Reason::File { path, source });
    }

    fn refuse(&mut self, address: u64, reason: Reason) {
        let symbol = Vec::new();
        self.refused.push(Refused {
            address,
            symbol,
            reason,
        });
    }

    /// Takes the sites and their functions. `false`: the loader has not relocated the table yet.
    fn take(&mut self, found: Found, next: u32, contents: &Contents) -> bool {
        let is_ready = !found.is_outside();
        let (mut sites, refused_exits) = (found.sites, found.refused_exits);
        self.refused.extend(found.refused);
        self.refused.sort_by_key(|refused| refused.address);
        self.refused.dedup_by_key(|refused| refused.address);
        sites.sort_by_key(|site| site.address);
        sites.dedup_by_key(|site| site.address);
        self.functions = functions(&sites, self.base, contents);
        let index = |at| {
            self.functions
                .partition_point(|function| function.address < at)
        };
        let site = |(id, found): (u32, Believed)| Site {
            id: SiteId(id),
            address: found.address,
            kind: found.kind,
            function: u32::try_from(index(found.function)).unwrap_or(u32::MAX),
            form: found.form,
        };
        self.sites = (next..).zip(sites).map(site).collect();
        let parts_of = contents.parts.iter().map(|(part, owners)| {
            let owners: Vec<_> = owners
                .iter()
                .map(|at| self.base.wrapping_add(*at))
                .collect();
            (self.base.wrapping_add(*part), owners)
        });
        let owners: Parts = parts_of.collect();
        let owners = |at| owners.get(&at).map(Vec::as_slice);
        exits::mark(&mut self.functions, &self.sites, &refused_exits, owners);
        is_ready
    }
}

/// The functions of these sites, sorted by address. They are kept, so their names are packed.
fn functions(sites: &[Believed], base: u64, contents: &Contents) -> Vec<Function> {
    let mut starts: Vec<_> = sites.iter().map(|site| site.function).collect();
    starts.sort_unstable();
    starts.dedup();
    let symbol = |start: &u64| contents.symbol(start.wrapping_sub(base));
    let none = SymbolName::default();
    let names = starts
        .iter()
        .map(|start| symbol(start).map_or(&none, |symbol| &symbol.name));
    let names = SymbolName::packed(names);
    let functions = starts.iter().zip(names).map(|(start, name)| Function {
        address: *start,
        size: symbol(start).map_or(0, |symbol| symbol.size.try_into().unwrap_or(u32::MAX)),
        symbol: name,
        has_exits: false,
        hands_on: contents.handing.contains(&start.wrapping_sub(base)),
    });
    functions.collect()
}
