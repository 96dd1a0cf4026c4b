//! `functions`: lists the functions that can be traced, and says why others cannot.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use ringmark_console::json::{Head, JsonOption};
use ringmark_console::units::{count, counted};
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Failure, Sink, Style, Table, json, note, printable};
use ringmark_format::tracer_text::{
    AnswerLine, Count, Exits, RequestLine, Site, Untraceable, Verb,
};
use ringmark_function_tracer::selection::{Candidate, MovedIn, Selection, Syntax};
use ringmark_function_tracer::sites::{InFile, demangled, in_file, readable};

use crate::options::rows::LinesOption;
use crate::tracing::mapped::{self, MappedFile};
use crate::tracing::movable::{MovableFile, MovableFunction};
use crate::tracing::tracer_session::TracerSession;
use crate::tracing::untraceable::{NO_SITES, STATIC, no_sites};

/// List functions that can be traced, in a running process or in a file
#[derive(Debug, clap::Args)]
#[command(override_usage = "ringmark functions [OPTIONS] <-p PID|FILE> [PATTERN]")]
#[command(after_help = "\
One line per function: address, size in bytes, name, module; for a process also
whether it is traced now. 'sleds' marks a function whose exits are patch sites,
too (XRay, -minstrument-return): its return address is left alone. 'moved' marks
one for which the compiler left no patch site: its first instructions are moved
to make room.

Functions without a patch site are listed where their file has none at all, or
where they are named: those of a library by NAME@MODULE, such as
'malloc@libc.so*'.

Where gcc cannot link C++ with -fpatchable-function-entry=5 ('referenced in
section __patchable_function_entries ... defined in discarded section'), or the
functions of a whole file are missing, compile and link with -flto as well, or
take clang++.

Examples:
  ringmark functions ./server 'parse_*'
  ringmark functions -p 812 --why main")]
pub(crate) struct Args {
    /// FILE, unless -p is given; then a pattern: NAME or NAME@MODULE, '*' is any text
    #[arg(value_name = "FILE|PATTERN", num_args = 0..=2)]
    words: Vec<String>,
    /// The process
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pid: Option<u32>,
    /// Say whether this function can be traced, and why not
    #[arg(long, value_name = "NAME")]
    why: Option<String>,
    /// Order: address is that of the module, size begins with the largest
    #[arg(long, value_enum, value_name = "ORDER", default_value = "address")]
    sort: SortBy,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

/// What the functions are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum SortBy {
    Address,
    Name,
    Size,
}

impl SortBy {
    fn sort(self, rows: &mut [&Row]) {
        match self {
            // They are found so.
            Self::Address => {}
            Self::Name => rows.sort_by_key(|row| &row.name),
            Self::Size => rows.sort_by_key(|row| Reverse(row.size)),
        }
    }
}

/// Text about a function without a patch site.
const NO_NOPS: &str = "no NOPs were left for it: its file was compiled without \
                       -fpatchable-function-entry=5, or it is marked so; or the linker dropped \
                       the entries of its file, which -flto mends";

/// Text about a function that the file only calls.
const IMPORTED: &str = "is called here, and is a function of another object: 'ringmark functions' with the file of that \
                        object lists it, and NAME@FILE traces it";
/// What the name of a part of a function that lies elsewhere holds, and the text about it.
const COLD: (&str, &str) = (
    ".cold",
    "a part of a function that lies elsewhere: it is traced with its function",
);

/// Text about a function without a patch site of its compiler.
const MOVED: &str = "can be traced: its first instructions are moved to make room";

/// Text about a function whose return address must stay.
const NO_END: &str = "its calls can be traced, its end is not seen: it asks who called it, or may jump to a \
                      function that does (dlopen, dlsym), so its return address stays";

/// A function, with the reason if it cannot be traced.
#[derive(Debug, Default)]
struct Row {
    /// `on`, `off` or `no`; empty in a file.
    state: &'static str,
    address: u64,
    size: u64,
    name: String,
    module: String,
    /// All its exits are patch sites.
    has_exits: bool,
    /// The ends of its calls cannot be seen.
    has_no_end: bool,
    /// Why it cannot be traced.
    reason: Option<String>,
    /// What is special where its compiler left no patch site for it.
    moved: Option<Moved>,
}

/// A function whose first instructions are moved to make room for a patch site.
#[derive(Debug)]
struct Moved {
    /// Its names, as selections ask for them.
    names: Vec<Vec<u8>>,
    /// Address in the file.
    offset: u64,
    of: MovedIn,
    /// Whether it is a function, and not a part of one.
    is_function: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let (file, pattern) = match (self.pid, self.words.as_slice()) {
            (Some(_), []) => (None, None),
            (Some(_), [pattern]) => (None, Some(pattern)),
            (None, [file]) => (Some(PathBuf::from(file)), None),
            (None, [file, pattern]) => (Some(PathBuf::from(file)), Some(pattern)),
            (Some(_), _) => {
                return Err(Failure::usage("found -p PID and FILE, expected one of them").into());
            }
            (None, _) => return Err(Failure::usage("expected -p PID or FILE").into()),
        };
        let mut selection = Selection::default();
        if let Some(pattern) = self.why.as_ref().or(pattern) {
            let wanted = selection.want(pattern, Syntax::Glob);
            wanted.map_err(|error| Failure::usage(error.to_string()))?;
        }
        let listed = self.listed(file.as_deref())?;
        let Listed { rows, head, .. } = &listed;
        let wanted = |row: &&Row| match self.why {
            Some(_) => wants(&selection, row),
            None => is_listed(&selection, row),
        };
        let mut found: Vec<_> = rows.iter().filter(wanted).collect();
        self.sort.sort(&mut found);
        if let Some(name) = &self.why {
            return match self.json.is_on() {
                true => why_json(&found, &listed, &selection),
                false => why(name, &found, &listed, (&selection, self.wide.columns())),
            };
        }
        let traceable = |rows: &[&Row]| rows.iter().filter(|row| row.reason.is_none()).count();
        match self.json.is_on() {
            true => list_json(&found[..self.lines.of(found.len())], head)?,
            false => list(&found, self.lines, self.wide.columns())?,
        }
        if traceable(&found) > 0 {
            return Ok(Exit::FINE);
        }
        let where_ = match (self.pid, &file) {
            (Some(pid), _) => format!("pid {pid}"),
            (None, Some(file)) => file.display().to_string(),
            (None, None) => String::new(),
        };
        let everything = Selection::default();
        let all = rows.iter().filter(|row| is_listed(&everything, row));
        let all = traceable(&all.collect::<Vec<_>>());
        let text = match (pattern.filter(|_| all > 0), &file) {
            (Some(pattern), _) => format!(
                "{} can be traced, {pattern:?} matches none of them",
                counted(all as u64, "function")
            ),
            (None, Some(file)) => {
                in_file(file).map_or_else(|_| NO_SITES.to_owned(), |f| no_sites(&f))
            }
            (None, None) => NO_SITES.to_owned(),
        };
        Err(Failure::no_target(format!("{where_}: {text}")).into())
    }

    fn listed(&self, file: Option<&Path>) -> anyhow::Result<Listed> {
        let Some(pid) = self.pid else {
            return Ok(file.map_or(Ok(Listed::default()), of_file)?);
        };
        let files = mapped::files(pid);
        let session = match TracerSession::of(pid)? {
            // Nothing was prepared: what the files say is all.
            None if files.iter().all(|file| !file.has_sites) => None,
            Some(session) => Some(session),
            None => Some(TracerSession::find(pid)?),
        };
        let mut rows = session.as_ref().map_or(Ok(Vec::new()), of_process)?;
        for file in files {
            let moved = moved_in(&file).unwrap_or_default();
            add_moved(&mut rows, moved);
        }
        let of_program = |_: &String| of_file(&program_of(pid)).ok();
        let listed = self.why.as_ref().and_then(of_program).unwrap_or_default();
        Ok(Listed {
            rows,
            head: session.map_or_else(Head::default, |session| session.head()),
            ..listed
        })
    }
}

fn program_of(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/exe"))
}

/// Whether a function is listed: where its compiler left no patch site, under the same conditions as it is
/// traced. Without a selection those of the program are.
fn is_listed(selection: &Selection, row: &Row) -> bool {
    let Some(moved) = &row.moved else {
        return selection.is_empty() || wants(selection, row);
    };
    if !moved.is_function {
        return false;
    }
    match selection.is_empty() {
        true => moved.of.is_program && !moved.of.has_sites && !moved.of.may_be_part,
        false => moved
            .candidates(row)
            .any(|candidate| selection.wants_moved(&candidate, moved.of)),
    }
}

impl Moved {
    /// What selections ask.
    fn candidates<'r>(&'r self, row: &'r Row) -> impl Iterator<Item = Candidate<'r>> {
        let none = self.names.is_empty().then_some(&b""[..]);
        let names = self.names.iter().map(Vec::as_slice).chain(none);
        names.map(|symbol| Candidate {
            symbol,
            module: file_name(&row.module).as_bytes(),
            bytes: row.size,
            offset: self.offset,
        })
    }
}

fn file_name(module: &str) -> &str {
    module.rsplit('/').next().unwrap_or(module)
}

/// Adds those functions of a file that are not there with a patch site of their compiler.
fn add_moved(rows: &mut Vec<Row>, moved: Vec<Row>) {
    /// From a function's beginning to its patch site at most.
    const TO_SITE: u64 = 16;
    let known: BTreeSet<u64> = rows.iter().map(|row| row.address).collect();
    let is_new = |row: &Row| {
        known
            .range(row.address..=row.address + TO_SITE)
            .next()
            .is_none()
    };
    rows.extend(moved.into_iter().filter(is_new));
}

/// The functions of a file for which its compiler left no patch site; none where the file cannot be read.
fn moved_in(file: &MappedFile) -> Option<Vec<Row>> {
    let movable = MovableFile::read(&file.path, &file.module).ok()?;
    let row = |function: MovableFunction<'_>| {
        let address = function.function.at.wrapping_add(file.base);
        Row {
            state: if file.base == 0 { "" } else { "off" },
            address,
            size: function.function.size,
            name: function.name(),
            module: file.module.display().to_string(),
            has_exits: false,
            has_no_end: function.keeps_return_address(),
            reason: function.refusal().map(|reason| match file.has_sites {
                true => format!("{NO_NOPS}; and {reason}"),
                false => reason,
            }),
            moved: Some(Moved {
                names: function.function.names.clone(),
                offset: function.function.at,
                of: MovedIn {
                    is_program: file.is_program,
                    has_sites: file.has_sites,
                    may_be_part: function.function.may_be_part,
                },
                is_function: function.is_function(),
            }),
        }
    };
    Some(movable.functions().map(row).collect())
}

fn wants(selection: &Selection, row: &Row) -> bool {
    if let Some(moved) = &row.moved {
        return moved
            .candidates(row)
            .any(|candidate| selection.wants(&candidate));
    }
    selection.wants(&Candidate {
        symbol: row.name.as_bytes(),
        module: file_name(&row.module).as_bytes(),
        bytes: 0,
        offset: 0,
    })
}

/// Why a function of the file is no function with a site.
fn why_other(name: &str) -> &'static str {
    if name.contains(COLD.0) {
        COLD.1
    } else {
        NO_NOPS
    }
}

fn wants_symbol(selection: &Selection, symbol: &str) -> bool {
    selection.wants(&Candidate {
        symbol: symbol.as_bytes(),
        module: b"",
        bytes: 0,
        offset: 0,
    })
}

/// The same as [`why`], as JSON.
fn why_json(rows: &[&Row], listed: &Listed, selection: &Selection) -> anyhow::Result<Exit> {
    let Listed { others, head, .. } = listed;
    let without = others.iter().filter(|other| wants_symbol(selection, other));
    let without = without.map(|name| Row {
        name: name.clone(),
        reason: Some(why_other(name).to_owned()),
        ..Row::default()
    });
    let without: Vec<_> = without.collect();
    let all: Vec<_> = rows.iter().copied().chain(&without).collect();
    list_json(&all, head)?;
    let all_traceable = all.iter().all(|row| row.reason.is_none());
    Ok(match all_traceable && !all.is_empty() {
        true => Exit::FINE,
        false => Exit::NO_TARGET,
    })
}

/// All patch sites of a process and what cannot be traced, asked for part by part.
fn of_process(session: &TracerSession) -> anyhow::Result<Vec<Row>> {
    let (mut rows, mut from, mut module) = (Vec::new(), 0_u64, String::new());
    loop {
        let lines = [RequestLine::From(from), RequestLine::Refused];
        let page = session.ask(Verb::Functions, &lines)?;
        for line in page.lines() {
            match line {
                AnswerLine::Module(path) => module = path.to_owned(),
                AnswerLine::Site(site) => rows.push(of_site(&site, &module)),
                AnswerLine::Untraceable(one) => rows.push(of_untraceable(&one, &module)),
                _ => {}
            }
        }
        let next = page.count(Count::Next);
        if next <= from {
            return Ok(rows);
        }
        from = next;
    }
}

fn of_site(site: &Site<'_>, module: &str) -> Row {
    Row {
        state: if site.is_on { "on" } else { "off" },
        address: site.address,
        size: site.bytes,
        name: site.name.to_owned(),
        module: module.to_owned(),
        has_exits: site.exits == Exits::Sleds,
        has_no_end: site.exits == Exits::None,
        ..Row::default()
    }
}

fn of_untraceable(one: &Untraceable<'_>, module: &str) -> Row {
    Row {
        state: "no",
        address: one.address,
        name: one.name.to_owned(),
        module: module.to_owned(),
        reason: Some(one.reason.to_owned()),
        ..Row::default()
    }
}

/// The functions of a process or of a file.
#[derive(Debug, Default)]
struct Listed {
    /// Those with a patch site, and those that cannot be traced with their reason.
    rows: Vec<Row>,
    /// Names of those without a patch site.
    others: Vec<String>,
    /// Names of those of other objects that are used.
    imported: Vec<String>,
    /// Whose they are.
    head: Head,
}

fn of_file(path: &Path) -> Result<Listed, Failure> {
    let InFile {
        functions,
        refused,
        others,
        imported,
        is_static,
        ..
    } = in_file(path).map_err(|e| Failure::unreadable(format!("{}: {e}", path.display())))?;
    let module = path.file_name().unwrap_or_default().as_encoded_bytes();
    let row = |address, symbol: &[u8]| Row {
        address,
        name: readable(symbol, module, address).into_owned(),
        module: path.display().to_string(),
        ..Row::default()
    };
    let functions = functions.iter().map(|f| Row {
        size: f.size.into(),
        has_exits: f.has_exits,
        has_no_end: f.has_no_end(),
        reason: is_static.then(|| STATIC.to_owned()),
        ..row(f.address, &f.symbol)
    });
    let refused = refused.iter().map(|r| Row {
        reason: Some(r.reason.to_string()),
        ..row(r.address, &r.symbol)
    });
    let names = |symbols: &BTreeSet<Vec<u8>>| {
        let names = symbols.iter().map(|symbol| demangled(symbol).into_owned());
        names.collect()
    };
    let mut rows: Vec<_> = functions.chain(refused).collect();
    let file = MappedFile {
        path: path.to_owned(),
        module: path.to_owned(),
        is_program: true,
        has_sites: !rows.is_empty(),
        base: 0,
    };
    let moved = moved_in(&file).filter(|_| !is_static).unwrap_or_default();
    add_moved(&mut rows, moved);
    rows.sort_by_key(|row| row.address);
    let mut others: Vec<_> = names(&others);
    let moved = rows.iter().filter_map(|row| row.moved.as_ref());
    let known: BTreeSet<_> = moved
        .flat_map(|moved| &moved.names)
        .map(|name| demangled(name).into_owned())
        .collect();
    others.retain(|name| !known.contains(name));
    Ok(Listed {
        rows,
        others,
        imported: names(&imported),
        head: Head::default(),
    })
}

/// The rows as a table for a terminal.
fn table(rows: &[&Row]) -> Table {
    let mut table = Table::new(&["ON", ">ADDRESS", ">BYTES", "NAME", "MODULE", "SITE"]);
    for row in rows.iter().filter(|row| row.reason.is_none()) {
        table.row(vec![
            row.state.to_owned(),
            format!("{:x}", row.address),
            row.size.to_string(),
            printable(&row.name),
            printable(&row.module),
            row.mark().to_owned(),
        ]);
    }
    table
}

fn list(rows: &[&Row], lines: LinesOption, columns: Option<usize>) -> anyhow::Result<()> {
    let mut out = Sink::paged().within(columns);
    let traceable = rows.iter().filter(|row| row.reason.is_none());
    if let Some(columns) = columns.filter(|_| traceable.clone().next().is_some()) {
        let mut table = table(rows);
        lines.cut(&mut table);
        table.fit(Some(columns));
        table.write(&mut out, Style::detect())?;
    } else {
        write_lines(traceable.clone().take(lines.of(rows.len())), &mut out)?;
    }
    out.finish()?;
    let functions = traceable.count() as u64;
    let refused = rows.len() as u64 - functions;
    if functions > 0 {
        note(&format!(
            "{} can be traced, {} cannot",
            counted(functions, "function"),
            count(refused)
        ));
    }
    Ok(())
}

/// Writes a line for each, which scripts can split.
fn write_lines<'r>(rows: impl Iterator<Item = &'r &'r Row>, out: &mut Sink) -> anyhow::Result<()> {
    for row in rows {
        let state = if row.state.is_empty() {
            String::new()
        } else {
            format!("{:<4}", row.state)
        };
        let (name, module) = (printable(&row.name), printable(&row.module));
        let line = format!(
            "{state}{:>12x} {:>6} {name}  {module}  {}",
            row.address,
            row.size,
            row.mark()
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

/// Prints functions as JSON, those that cannot be traced included.
fn list_json(rows: &[&Row], head: &Head) -> anyhow::Result<()> {
    let mut out = Sink::direct();
    for row in rows {
        writeln!(out, "{}", json::Line(row.json(head)))?;
    }
    Ok(out.finish()?)
}

impl Row {
    /// What is special about its patch site.
    fn mark(&self) -> &'static str {
        match (self.has_exits, &self.moved) {
            (true, _) => "sleds",
            (false, Some(_)) => "moved",
            (false, None) => "",
        }
    }

    fn json(&self, head: &Head) -> serde_json::Value {
        let ends = match (self.has_exits, self.has_no_end) {
            _ if self.reason.is_some() => None,
            (true, _) => Some("sleds"),
            (false, true) => Some("none"),
            (false, false) => Some("return_address"),
        };
        let fields = serde_json::json!({
            "name": self.name,
            "target": self.module,
            "address": json::address(self.address),
            "code_bytes": self.size,
            "on": (!self.state.is_empty()).then_some(self.state == "on"),
            "traceable": self.reason.is_none(),
            "ends": ends,
            "site": self.reason.is_none().then_some(match self.moved {
                Some(_) => "moved",
                None => "compiler",
            }),
            "reason": self.reason,
        });
        json::object("traceable", head, fields)
    }
}

fn why(
    name: &str,
    rows: &[&Row],
    listed: &Listed,
    (selection, columns): (&Selection, Option<usize>),
) -> anyhow::Result<Exit> {
    let Listed {
        others, imported, ..
    } = listed;
    let mut out = Sink::direct().within(columns);
    for row in rows {
        let (function, module) = (printable(&row.name), printable(&row.module));
        let text = match &row.reason {
            None if row.has_exits => "can be traced, its exits by sleds",
            None if row.has_no_end => NO_END,
            None if row.moved.is_some() => MOVED,
            None => "can be traced",
            Some(reason) => &printable(reason),
        };
        writeln!(out, "{function}  {module}: {text}")?;
    }
    let without = others.iter().filter(|other| wants_symbol(selection, other));
    let mut untraced = 0;
    for other in without {
        untraced += 1;
        writeln!(out, "{}: {}", printable(other), why_other(other))?;
    }
    for name in imported.iter().filter(|name| wants_symbol(selection, name)) {
        untraced += 1;
        writeln!(out, "{}: {IMPORTED}", printable(name))?;
    }
    out.finish()?;
    if rows.is_empty() && untraced == 0 {
        return Err(Failure::no_target(format!(
            "{name}: there is no such function: another name, or inlined everywhere"
        ))
        .into());
    }
    let all_traceable = untraced == 0 && rows.iter().all(|row| row.reason.is_none());
    Ok(if all_traceable {
        Exit::FINE
    } else {
        Exit::NO_TARGET
    })
}
