//! Which functions a function tracer selects.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::os::unix::ffi::OsStrExt;

use ringmark_format::glob::matches as glob;
pub use ringmark_format::tracer_text::Syntax;

use crate::sites::{Module, Site, readable};

/// What a selection needs to know about a function.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// The name in the symbol table; empty for a function without a symbol.
    pub symbol: &'a [u8],
    /// File name of the function's module.
    pub module: &'a [u8],
    /// Size in bytes; 0: unknown.
    pub bytes: u64,
    /// Address in the module's file, which names a function without a symbol.
    pub offset: u64,
}

/// Whether `selection` selects the function of `site`.
pub(crate) fn selects(selection: &Selection, module: &Module, site: &Site) -> bool {
    let candidate = candidate(module, site);
    if module.moved.is_empty() {
        return selection.wants(&candidate);
    }
    let of = MovedIn {
        is_program: module.is_program,
        has_sites: module.is_beside_sites,
        may_be_part: false,
    };
    selection.wants_moved(&candidate, of)
}

/// What a selection needs to know about the function of `site`.
pub(crate) fn candidate<'m>(module: &'m Module, site: &Site) -> Candidate<'m> {
    let function = module.function(site);
    let file = module.path.file_name().unwrap_or_default();
    Candidate {
        symbol: function.map_or(&[], |f| &*f.symbol),
        module: file.as_bytes(),
        bytes: function.map_or(0, |f| f.size.into()),
        offset: function.map_or(0, |f| f.address.wrapping_sub(module.base)),
    }
}

/// Where a function is for which its compiler left no patch site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MovedIn {
    /// In the program, not in a shared object that it loads.
    pub is_program: bool,
    /// In a file with patch sites of its compiler.
    pub has_sites: bool,
    /// It may be a part of another function.
    pub may_be_part: bool,
}

/// One pattern: a name, and optionally the module that the function must be in.
#[derive(Debug, Clone)]
struct Pattern {
    name: Name,
    module: Option<String>,
    /// The pattern as written by the user.
    text: String,
}

#[derive(Debug, Clone)]
enum Name {
    Glob(String),
    Regex(regex_lite::Regex),
}

/// A pattern that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern {found:?}: {reason}")]
pub struct PatternError {
    /// The pattern.
    pub found: String,
    /// What is wrong with it.
    pub reason: PatternFault,
}

/// What is wrong with a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternFault {
    /// It has neither a name nor a module.
    #[error("expected a name, '*' is any text")]
    NoName,
    /// It is no regular expression; the text is that of the library for regular expressions.
    #[error("{0}")]
    Regex(String),
}

impl Pattern {
    /// `NAME` or `NAME@MODULE`.
    fn parse(text: &str, syntax: Syntax) -> Result<Self, PatternError> {
        let (name, module) = match text.rsplit_once('@') {
            Some((name, module)) if !module.is_empty() => (name, Some(module.to_owned())),
            _ => (text, None),
        };
        let wrong = |reason| PatternError {
            found: text.to_owned(),
            reason,
        };
        let name = match syntax {
            Syntax::Glob if name.is_empty() && module.is_none() => {
                return Err(wrong(PatternFault::NoName));
            }
            Syntax::Glob if name.is_empty() => Name::Glob("*".to_owned()),
            Syntax::Glob => Name::Glob(name.to_owned()),
            Syntax::Regex => {
                let regex = regex_lite::Regex::new(name);
                Name::Regex(regex.map_err(|e| wrong(PatternFault::Regex(e.to_string())))?)
            }
        };
        Ok(Self {
            name,
            module,
            text: text.to_owned(),
        })
    }

    /// Whether it names one function.
    fn is_plain(&self) -> bool {
        matches!(&self.name, Name::Glob(name) if !name.contains(['*', '?']))
    }

    fn matches(&self, candidate: &Candidate<'_>, names: &Names<'_>) -> bool {
        let module = self.module.as_deref();
        if module.is_some_and(|m| !glob(m.as_bytes(), candidate.module)) {
            return false;
        }
        match &self.name {
            Name::Glob(pattern) if pattern == "*" => true,
            Name::Regex(regex) => regex.is_match(names.readable()),
            Name::Glob(pattern) => {
                let (pattern, readable) = (pattern.as_bytes(), names.readable());
                glob(pattern, readable.as_bytes())
                    || (readable.contains('(')
                        && glob(pattern, without_parameters(readable).as_bytes()))
                    || (candidate.symbol != readable.as_bytes() && glob(pattern, candidate.symbol))
            }
        }
    }
}

/// The name for people of a function, which is made when a pattern asks for it.
struct Names<'c> {
    candidate: &'c Candidate<'c>,
    readable: OnceCell<Cow<'c, str>>,
}

impl<'c> Names<'c> {
    fn of(candidate: &'c Candidate<'c>) -> Self {
        let readable = OnceCell::new();
        Self {
            candidate,
            readable,
        }
    }

    fn readable(&self) -> &str {
        let Candidate {
            symbol,
            module,
            offset,
            ..
        } = *self.candidate;
        self.readable
            .get_or_init(|| readable(symbol, module, offset))
    }
}

/// `pool::work` of `pool::work(int)`.
fn without_parameters(name: &str) -> &str {
    match name.find('(') {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Which functions are selected: those that match a wanted pattern, match no unwanted one, and are
/// large enough.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    wanted: Vec<Pattern>,
    unwanted: Vec<Pattern>,
    /// Size of selected functions in bytes at least. 0: all functions, also those of unknown size.
    pub min_bytes: u64,
}

impl Selection {
    /// A selection of every function.
    #[must_use]
    pub fn all() -> Self {
        Self {
            wanted: vec![Pattern {
                name: Name::Glob("*".to_owned()),
                module: None,
                text: "*".to_owned(),
            }],
            ..Self::default()
        }
    }

    /// Adds functions: `NAME` or `NAME@MODULE`.
    ///
    /// # Errors
    /// The pattern cannot be understood.
    pub fn want(&mut self, pattern: &str, syntax: Syntax) -> Result<(), PatternError> {
        self.wanted.push(Pattern::parse(pattern, syntax)?);
        Ok(())
    }

    /// Leaves functions out; prevails over [`Selection::want`].
    ///
    /// # Errors
    /// The pattern cannot be understood.
    pub fn leave_out(&mut self, pattern: &str, syntax: Syntax) -> Result<(), PatternError> {
        self.unwanted.push(Pattern::parse(pattern, syntax)?);
        Ok(())
    }

    /// Replaces the wanted functions, if `other` wants some, and those left out, if `other` leaves
    /// some out.
    pub fn replace(&mut self, other: Self) {
        if !other.wanted.is_empty() {
            self.wanted = other.wanted;
        }
        if !other.unwanted.is_empty() {
            self.unwanted = other.unwanted;
        }
    }

    /// Whether nothing is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.wanted.is_empty()
    }

    /// The patterns as written by the user, with `!` in front of those that leave functions out.
    #[must_use]
    pub fn text(&self) -> String {
        let wanted = self.wanted.iter().map(|p| p.text.clone());
        let unwanted = self.unwanted.iter().map(|p| format!("!{}", p.text));
        wanted.chain(unwanted).collect::<Vec<_>>().join(" ")
    }

    /// Whether functions of any module may be selected for which its compiler left no patch site. `of`: the program.
    #[must_use]
    pub fn means_moved(&self, of: MovedIn) -> bool {
        let is_meant =
            |pattern: &Pattern| pattern.module.is_some() || !of.has_sites || pattern.is_plain();
        self.wanted.iter().any(is_meant)
    }

    /// Whether functions of a module for which its compiler left no patch site may be selected.
    #[must_use]
    pub fn means_moved_in(&self, module: &[u8], of: MovedIn) -> bool {
        let is_meant = |pattern: &Pattern| match &pattern.module {
            Some(wanted) => glob(wanted.as_bytes(), module),
            None => of.is_program && (!of.has_sites || pattern.is_plain()),
        };
        self.wanted.iter().any(is_meant)
    }

    /// Whether this function, for which its compiler left no patch site, is selected. A pattern without a
    /// module means the program alone, and where that has patch sites of its compiler, only a function that
    /// it names without `*`: who has prepared a program means what was prepared.
    #[must_use]
    pub fn wants_moved(&self, candidate: &Candidate<'_>, of: MovedIn) -> bool {
        let is_meant = |pattern: &Pattern| {
            let is_of_program = of.is_program && (!of.has_sites || pattern.is_plain());
            let is_plain_enough = !of.may_be_part || pattern.is_plain();
            (is_of_program || pattern.module.is_some()) && is_plain_enough
        };
        let names = Names::of(candidate);
        let mut wanted = self.wanted.iter().filter(|pattern| is_meant(pattern));
        self.wants(candidate) && wanted.any(|pattern| pattern.matches(candidate, &names))
    }

    /// Whether this function is selected.
    #[must_use]
    pub fn wants(&self, candidate: &Candidate<'_>) -> bool {
        if self.min_bytes > 0 && candidate.bytes < self.min_bytes {
            return false;
        }
        let names = Names::of(candidate);
        let any = |patterns: &[Pattern]| patterns.iter().any(|p| p.matches(candidate, &names));
        any(&self.wanted) && !any(&self.unwanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wants(selection: &Selection, symbol: &str, module: &str) -> bool {
        selection.wants(&Candidate {
            symbol: symbol.as_bytes(),
            module: module.as_bytes(),
            bytes: 64,
            offset: 0x11d0,
        })
    }

    #[test]
    fn names_modules_and_exceptions() {
        let mut selection = Selection::default();
        assert!(!wants(&selection, "main", "server"));
        selection.want("pool::*", Syntax::Glob).unwrap();
        selection.want("@libz.so*", Syntax::Glob).unwrap();
        selection.leave_out("*idle", Syntax::Glob).unwrap();
        assert!(wants(&selection, "_ZN4pool4workEi", "server"));
        assert!(wants(&selection, "inflate", "libz.so.1"));
        assert!(!wants(&selection, "inflate", "server"));
        assert!(!wants(&selection, "_ZN4pool4idleEv", "server"));
        assert_eq!(selection.text(), "pool::* @libz.so* !*idle");
        selection.min_bytes = 65;
        assert!(!wants(&selection, "inflate", "libz.so.1"));
        assert!(wants(&Selection::all(), "anything", "x"));
    }

    #[test]
    fn parameters_need_not_be_written() {
        let mut selection = Selection::default();
        selection.want("pool::work", Syntax::Glob).unwrap();
        assert!(wants(&selection, "_ZN4pool4workEi", "server"));
        assert!(!wants(&selection, "_ZN4pool5work2Ei", "server"));
    }

    #[test]
    fn a_place_stands_for_a_name_that_is_not_there() {
        let mut selection = Selection::default();
        selection.want("server+0x11d0", Syntax::Glob).unwrap();
        assert!(wants(&selection, "", "server"));
        assert!(!wants(&selection, "", "other") && !wants(&selection, "main", "server"));
    }

    #[test]
    fn without_a_site_a_pattern_means_the_program_unless_it_says_otherwise() {
        let wants = |pattern: &str, of: MovedIn| {
            let mut selection = Selection::default();
            selection.want(pattern, Syntax::Glob).unwrap();
            let candidate = Candidate {
                symbol: b"malloc",
                module: b"libc.so.6",
                bytes: 64,
                offset: 0x11d0,
            };
            selection.wants_moved(&candidate, of)
        };
        let library = MovedIn {
            is_program: false,
            has_sites: false,
            may_be_part: false,
        };
        assert!(!wants("malloc", library) && !wants("*", library));
        assert!(wants("malloc@libc.so.6", library) && wants("m*@libc*", library));
        let program = MovedIn {
            is_program: true,
            ..library
        };
        assert!(wants("m*", program) && !wants("x*", program));
        let has_sites = MovedIn {
            has_sites: true,
            ..program
        };
        assert!(wants("malloc", has_sites) && !wants("m*", has_sites));
        let part = MovedIn {
            may_be_part: true,
            ..program
        };
        assert!(wants("malloc", part) && !wants("m*", part));
    }

    #[test]
    fn regular_expressions() {
        let mut selection = Selection::default();
        selection.want("^lua_(push|pop)", Syntax::Regex).unwrap();
        assert!(wants(&selection, "lua_pushnil", "lua"));
        assert!(!wants(&selection, "xlua_pushnil", "lua"));
        assert!(selection.want("(", Syntax::Regex).is_err());
        assert!(selection.want("", Syntax::Glob).is_err());
    }
}
