//! Who imports whom inside a crate: an arrow from each file to the files whose items it names,
//! through `use`, `pub use` or a path in the code.
//!
//! A name is followed through re-exports to the file that defines it. A parent that only declares
//! its children and re-exports their names is no importer of them; it is one as soon as its own
//! code uses such a name. Code that only tests see is left out.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Module, at_path, joined, of_file};
use super::paths::{self, Use};
use super::scan::{Scanned, closing, words};
use super::sources::Source;

/// Arrows between files, by path of the file: importer → imported.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// A file by its number, and whether the whole module is meant.
type Resolved = (usize, bool);

/// How many re-exports a name is followed through.
const HOPS_MAX: usize = 8;

struct File {
    path: String,
    module: Module,
    uses: Vec<Use>,
    /// Code outside `use`.
    code: String,
    /// Modules in braces: offsets of the body, name.
    inner: Vec<(usize, usize, String)>,
    /// Modules with a `#[path]`: their names, and the modules by whose paths their files lie.
    moved: Vec<(Module, Module)>,
}

/// A crate's files as modules.
struct Crate {
    files: Vec<File>,
    by_module: BTreeMap<Module, usize>,
    macros: BTreeMap<String, usize>,
}

/// The arrows of the crate whose sources lie below `src`, such as `ring/src/`. Every file is a
/// key.
#[must_use]
pub fn arrows(sources: &[Source], src: &str) -> Arrows {
    let all = Crate::new(sources, src);
    let mut arrows = Arrows::new();
    for (at, file) in all.files.iter().enumerate() {
        let targets = all.imports(file).into_iter();
        let others = targets.filter(|&target| target != at);
        let others = others.map(|target| all.files[target].path.clone());
        arrows.insert(file.path.clone(), others.collect());
    }
    arrows
}

/// Every `use` of all names of another module of the crate, `use super::*`: it hides which files
/// are imported.
#[must_use]
pub fn globs(sources: &[Source], src: &str) -> Vec<String> {
    let all = Crate::new(sources, src);
    let files = all.files.iter().flat_map(|file| {
        let uses = file.uses.iter().filter(|used| all.is_glob(file, used));
        uses.map(|used| {
            let path = used.path.join("::");
            format!(
                "{}: `use {path}` hides what it imports: name the items",
                file.path
            )
        })
    });
    files.collect()
}

impl Crate {
    fn is_glob(&self, file: &File, used: &Use) -> bool {
        let base = file.module_at(used.at);
        let from = &used.path[..used.path.len().saturating_sub(1)];
        let is_module = || matches!(self.resolve(file, &base, from, 0), Some((_, true)));
        !used.is_export && used.name == "*" && is_module()
    }

    fn new(sources: &[Source], src: &str) -> Self {
        let ours = sources.iter().filter(|source| {
            let below = source.path.strip_prefix(src);
            // A binary of its own is a crate of its own.
            below.is_some_and(|rest| !rest.starts_with("bin/")) && source.is_rust()
        });
        let files: Vec<_> = ours
            .filter(|source| !source.path.ends_with("/tests.rs"))
            .map(|source| File::new(source, src))
            .collect();
        let by_module = modules(&files);
        let macros = files.iter().enumerate().flat_map(|(at, file)| {
            let exported = exported_macros(&file.code);
            exported.map(move |name| (name.to_owned(), at))
        });
        Self {
            by_module,
            macros: macros.collect(),
            files,
        }
    }

    fn imports(&self, file: &File) -> BTreeSet<usize> {
        let mut targets = BTreeSet::new();
        let mut aliases = BTreeMap::new();
        for used in &file.uses {
            let base = file.module_at(used.at);
            let Some((target, is_module)) = self.resolve(file, &base, &used.path, 0) else {
                continue;
            };
            if is_module && !used.is_export {
                // What is used through it counts, wherever that is defined.
                aliases.insert(used.name.as_str(), (base, &used.path));
            } else if !self.is_mere_export(file, used, target) {
                targets.insert(target);
            }
        }
        for (at, path) in paths::inline(&file.code) {
            let base = file.module_at(at);
            let found = match aliases.get(path[0]) {
                Some((base, prefix)) => {
                    let whole = prefix.iter().map(String::as_str).chain(path[1..].to_vec());
                    self.resolve(file, base, &owned(whole), 0)
                }
                None => self.resolve(file, &base, &owned(path), 0),
            };
            targets.extend(found.map(|(target, _)| target));
        }
        targets
    }

    /// Whether `used` passes a name of a file below on and the file itself does nothing with it.
    fn is_mere_export(&self, file: &File, used: &Use, target: usize) -> bool {
        let below = &self.files[target].module;
        let is_child = below.len() > file.module.len() && below.starts_with(&file.module);
        let is_declared = |at: usize| file.code[..at].trim_end().ends_with("mod");
        let mut named = words(&file.code, &used.name);
        let is_used = used.name != "*" && named.any(|at| !is_declared(at));
        used.is_export && is_child && !is_used
    }

    /// The file that defines what `path` names in module `base` of `file`, and whether it names
    /// the module as a whole. `None` for paths that lead out of the crate.
    fn resolve(
        &self,
        file: &File,
        base: &Module,
        path: &[String],
        hops: usize,
    ) -> Option<Resolved> {
        let mut here = base.clone();
        let mut rest = path;
        while let Some((first, behind)) = rest.split_first() {
            match first.as_str() {
                "crate" => here.clear(),
                "self" => {}
                "super" => drop(here.pop()?),
                name if rest.len() == path.len() => {
                    let is_child = self.by_module.contains_key(&joined(&here, name));
                    (is_child || file.has_inner(name)).then_some(())?;
                    break;
                }
                _ => break,
            }
            rest = behind;
        }
        self.descend(here, rest, hops)
    }

    fn descend(&self, mut here: Module, rest: &[String], hops: usize) -> Option<Resolved> {
        for (done, name) in rest.iter().enumerate() {
            let child = joined(&here, name);
            if self.by_module.contains_key(&child) {
                here = child;
                continue;
            }
            let at = self.file_of(&here)?;
            let exported = self.exported(at, &here, &rest[done..], hops);
            return exported.or_else(|| Some((self.defining(at, &here, name), false)));
        }
        Some((self.file_of(&here)?, true))
    }

    /// The file of a module, which for a module in braces is that of the one around it.
    fn file_of(&self, module: &Module) -> Option<usize> {
        let mut lengths = (0..=module.len()).rev();
        lengths.find_map(|length| self.by_module.get(&module[..length]).copied())
    }

    /// The file that `rest` leads to through a `use` of file `at`, if it has one of that name.
    fn exported(&self, at: usize, here: &Module, rest: &[String], hops: usize) -> Option<Resolved> {
        if hops == HOPS_MAX {
            return None;
        }
        let file = &self.files[at];
        let (name, behind) = rest.split_first()?;
        // What a module in braces uses is known there only.
        let uses = || file.uses.iter().filter(|u| file.module_at(u.at) == *here);
        let mut named = uses().filter(|used| used.name == *name);
        let found = named.find_map(|used| {
            let path: Vec<_> = used.path.iter().chain(behind).cloned().collect();
            self.resolve(file, here, &path, hops + 1)
        });
        let mut globs = uses().filter(|used| used.name == "*");
        found.or_else(|| {
            globs.find_map(|used| {
                let from = &used.path[..used.path.len() - 1];
                let (target, _) = self.resolve(file, here, from, hops + 1)?;
                defines(&self.files[target].code, name).then_some((target, false))
            })
        })
    }

    fn defining(&self, at: usize, here: &Module, name: &str) -> usize {
        let is_macro = here.is_empty() && !defines(&self.files[at].code, name);
        let of_macro = self.macros.get(name).filter(|_| is_macro);
        of_macro.copied().unwrap_or(at)
    }
}

impl File {
    fn new(source: &Source, src: &str) -> Self {
        let scanned = Scanned::new(&source.text);
        let (uses, code) = paths::uses(&scanned.product);
        let path = &source.path[src.len()..];
        let module = of_file(path);
        let moved = paths::moved(&scanned).into_iter().map(|(name, to)| {
            let place = path.rsplit_once('/').map_or("", |(dir, _)| dir);
            (joined(&module, &name), at_path(place, &to))
        });
        Self {
            path: source.path.clone(),
            uses,
            inner: inner_modules(&code),
            code,
            moved: moved.collect(),
            module,
        }
    }

    /// The module that the code at an offset belongs to.
    fn module_at(&self, at: usize) -> Module {
        let around = self
            .inner
            .iter()
            .filter(|(from, to, _)| (*from..*to).contains(&at));
        let names = around.map(|(_, _, name)| name.clone());
        self.module.iter().cloned().chain(names).collect()
    }

    fn has_inner(&self, name: &str) -> bool {
        self.inner.iter().any(|(_, _, inner)| inner == name)
    }
}

/// The files by their modules. One below a `#[path]` has two: that of its place, and that of the
/// attribute, unless the place of another file gives it.
fn modules(files: &[File]) -> BTreeMap<Module, usize> {
    let by_place = files.iter().enumerate();
    let mut all: BTreeMap<_, _> = by_place
        .map(|(at, file)| (file.module.clone(), at))
        .collect();
    for (name, place) in files.iter().flat_map(|file| &file.moved) {
        for (at, file) in files.iter().enumerate() {
            if let Some(rest) = file.module.strip_prefix(place.as_slice()) {
                let whole = name.iter().chain(rest).cloned().collect();
                all.entry(whole).or_insert(at);
            }
        }
    }
    all
}

fn inner_modules(code: &str) -> Vec<(usize, usize, String)> {
    let starts = words(code, "mod").filter_map(|at| {
        let rest = code[at + 3..].trim_start();
        let end = rest.find(|c: char| !super::scan::is_ident(c))?;
        let open = at + code[at..].find(['{', ';'])?;
        let is_body = code.as_bytes()[open] == b'{';
        is_body.then(|| (open, closing(code, open), rest[..end].to_owned()))
    });
    starts.collect()
}

fn exported_macros(code: &str) -> impl Iterator<Item = &str> {
    let exported = code.match_indices("#[macro_export]");
    exported.filter_map(|(at, _)| {
        let name = code[at..].split_once("macro_rules!")?.1.trim_start();
        name.split([' ', '{', '(']).next()
    })
}

/// Whether `code` defines an item of this name.
fn defines(code: &str, name: &str) -> bool {
    const ITEMS: [&str; 9] = [
        "struct",
        "enum",
        "union",
        "fn",
        "trait",
        "type",
        "const",
        "static",
        "macro_rules!",
    ];
    words(code, name).any(|at| {
        let before = code[..at].trim_end();
        ITEMS.iter().any(|item| before.ends_with(item))
    })
}

fn owned<'a>(path: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    path.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arrows of a crate of these files, as `from -> to`, without `src/` and `.rs`.
    fn drawn(files: &[(&str, &str)]) -> Vec<String> {
        let sources = files.iter();
        let sources: Vec<_> = sources
            .map(|(path, text)| Source::new(&format!("x/src/{path}.rs"), text))
            .collect();
        let short = |path: &str| path["x/src/".len()..].trim_end_matches(".rs").to_owned();
        let arrows = arrows(&sources, "x/src/");
        let pairs = arrows.iter().flat_map(|(from, targets)| {
            let line = move |to: &String| format!("{} -> {}", short(from), short(to));
            targets.iter().map(line)
        });
        pairs.collect()
    }

    #[test]
    fn each_kind_of_import_is_an_arrow() {
        let kinds = [
            "use crate::b::B;",
            "use super::b::B;",
            "use crate::{b::{self, B}};\nfn f() { b::g() }",
            "fn f() { crate::b::g() }",
            "fn f() -> super::b::B { todo() }",
            "use crate::b;\nfn f() { b::g() }",
            "pub use crate::b::B;",
            "pub(crate) use super::b::*;",
            "macro_rules! m { () => { $crate::b::g() } }",
        ];
        for kind in kinds {
            let files = [("lib", "mod a;\nmod b;"), ("a", kind), ("b", "")];
            assert_eq!(drawn(&files), ["a -> b"], "{kind}");
        }
    }

    #[test]
    fn a_glob_of_a_module_is_found() {
        let found = |a: &str| {
            let files = [
                ("lib", "mod a;\nmod b;"),
                ("a", a),
                ("b", "pub enum E { F }"),
            ];
            let files = files.map(|(path, text)| Source::new(&format!("x/src/{path}.rs"), text));
            globs(&files, "x/src/").len()
        };
        for glob in ["use super::*;", "use crate::b::*;", "use crate::{b::*};"] {
            assert_eq!(found(glob), 1, "{glob}");
        }
        let tests = "#[cfg(test)]\nmod tests { use super::*; }";
        for other in [
            "use crate::b::E::*;",
            "use std::io::*;",
            "pub use super::b::*;",
            tests,
        ] {
            assert_eq!(found(other), 0, "{other}");
        }
    }

    #[test]
    fn what_only_tests_and_comments_name_is_no_import() {
        let text = "// crate::b::g()\n#[cfg(test)]\nmod tests { use crate::b::B; }";
        let files = [("lib", "mod a;\nmod b;"), ("a", text), ("b", "")];
        assert!(drawn(&files).is_empty());
    }

    #[test]
    fn a_name_is_followed_to_the_file_that_defines_it() {
        let lib = "mod a;\nmod b;\npub use b::{B, c::*};";
        let b = "pub mod c;\npub struct B;";
        let files = |a| [("lib", lib), ("a", a), ("b", b), ("b/c", "pub struct C;")];
        assert_eq!(drawn(&files("use crate::B;")), ["a -> b"]);
        assert_eq!(drawn(&files("use crate::C;")), ["a -> b/c"]);
        assert_eq!(
            drawn(&files("use crate::b;\nfn f(c: b::c::C) {}")),
            ["a -> b/c"]
        );
    }

    #[test]
    fn a_parent_that_only_exports_its_children_imports_none() {
        let parent = |code| [("lib", "mod p;"), ("p", code), ("p/c", "use super::D;")];
        let only = parent("mod c;\npub use c::C;\nmacro_rules! D { () => {} }");
        assert_eq!(drawn(&only), ["p/c -> p"]);
        let uses = parent("mod c;\npub use c::C;\nfn f(c: C) {}");
        assert_eq!(drawn(&uses), ["p -> p/c", "p/c -> p"]);
    }

    #[test]
    fn modules_in_braces_belong_to_their_file() {
        let a = "pub mod kind { pub const K: u8 = super::super::b::X; }";
        let b = "pub const X: u8 = 0;\nfn f() { crate::a::kind::K; }";
        let files = [("lib", "mod a;\nmod b;"), ("a", a), ("b", b)];
        assert_eq!(drawn(&files), ["a -> b", "b -> a"]);
    }

    #[test]
    fn what_a_module_in_braces_uses_is_no_export_of_its_file() {
        let a = "pub struct X;\nmod inner { use super::X;\nfn f(x: X) {} }";
        let files = [
            ("lib", "mod a;\nmod b;"),
            ("a", a),
            ("b", "use crate::a::X;"),
        ];
        assert_eq!(drawn(&files), ["b -> a"]);
    }

    #[test]
    fn exported_macros_belong_to_the_file_that_defines_them() {
        let a = "#[macro_export]\nmacro_rules! m { () => {} }";
        let files = [
            ("lib", "mod a;\nmod b;"),
            ("a", a),
            ("b", "fn f() { crate::m!() }"),
        ];
        assert_eq!(drawn(&files), ["b -> a"]);
    }
}
