//! What is stored at one moment, for queries: the files that the tables have, and the rows that they do not have yet.
//!
//! Each row is in one of both, or is not there: the rows are those that the next batches of `compact` would add, if
//! nothing waited. Where there are no tables, or the input is no store of objects, all rows are such.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use ringmark_console::extension::store_url;
use ringmark_decoder::store::{
    self, DirectorySource, ListedObject, OBJECTS_ID, ObjectSource, Opened, RAW,
};
use ringmark_decoder::{
    Chosen, CoveredSession, Dump, DumpBuilder, Filter, Row, Session, SessionChoice,
};

use crate::compact::{self, AddedFile, Forgotten, TablesNow};
use crate::remote::Bucket;
use crate::table::{Table, stored_schema};

/// The tables that a query has: spans with calls, and other events.
pub const TABLES: [&str; 2] = ["spans", "events"];

/// Objects, for several readers.
pub type Source = Arc<dyn ObjectSource + Send + Sync>;

/// A store, or a trace file, with its tables at one moment.
pub struct Stored {
    /// Path or address of what is read.
    place: String,
    source: Source,
    tables: Option<Source>,
    files: BTreeMap<&'static str, Vec<AddedFile>>,
    /// Segments whose rows are in the tables.
    done: Arc<BTreeSet<String>>,
    forgotten: Forgotten,
    covered: Vec<CoveredSession>,
    is_objects: bool,
}

impl fmt::Debug for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stored").field(&self.place).finish()
    }
}

/// Which rows are wanted. More may be given.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// Hosts and services.
    pub choice: SessionChoice,
    /// Only rows that began at this time or later, in ns since 1970.
    pub from_ns: Option<u64>,
    /// Only rows that began before this time.
    pub to_ns: Option<u64>,
    /// They may end later than that.
    pub is_to_of_starts: bool,
    /// Names, of which one fits.
    pub names: Vec<String>,
}

/// What reading rows had to read.
#[derive(Debug, Clone, Default)]
pub struct ReadRows {
    /// What could not be used.
    pub damage: Vec<String>,
}

impl Stored {
    /// What is at `place`: a store, `file:///DIR`, `s3://BUCKET/PREFIX`, or a trace file. `tables`: a directory with its tables, if
    /// it is another one.
    ///
    /// # Errors
    /// It cannot be read, or is no store.
    pub fn open(place: &str, tables: Option<&str>) -> anyhow::Result<Self> {
        let place = absolute(place)?;
        let is_objects = is_bucket(&place) || Path::new(&place).join(OBJECTS_ID).is_file();
        let beside = is_objects.then(|| place.clone());
        let mut stored = Self {
            source: source(&place)?,
            tables: None,
            files: BTreeMap::new(),
            done: Arc::default(),
            forgotten: Forgotten::default(),
            covered: Vec::new(),
            is_objects,
            place,
        };
        if let Some(named) = tables {
            let found = stored.read_tables(absolute(named)?)?;
            anyhow::ensure!(
                found,
                "{named}: found no tables/losses, expected tables of 'ringmark compact'"
            );
        } else if let Some(beside) = beside {
            let _ = stored.read_tables(beside)?;
        }
        Ok(stored)
    }

    /// Reads the tables at a place; `false`: there are none.
    fn read_tables(&mut self, place: String) -> anyhow::Result<bool> {
        let found = TablesNow::read(&place, &*self.source).with_context(|| place.clone())?;
        let Some(TablesNow {
            files,
            done,
            forgotten,
            covered,
        }) = found
        else {
            return Ok(false);
        };
        self.tables = Some(source(&place)?);
        self.files = files;
        self.done = Arc::new(done);
        self.forgotten = forgotten;
        self.covered = covered;
        Ok(true)
    }

    /// Where the files of the tables are; `None`: there are no tables.
    #[must_use]
    pub fn tables(&self) -> Option<&Source> {
        self.tables.as_ref()
    }

    /// The files of a table, by paths below `tables/` and its name.
    #[must_use]
    pub fn files(&self, table: &str) -> &[AddedFile] {
        self.files.get(table).map_or(&[], Vec::as_slice)
    }

    /// The columns of both tables.
    #[must_use]
    pub fn schema() -> SchemaRef {
        stored_schema()
    }

    /// Whether parts of the rows can be read at the same time: each reads parts of files.
    #[must_use]
    pub fn is_near(&self) -> bool {
        !is_bucket(&self.place)
    }

    /// Gives the rows of a table that its files do not have, in batches. `columns`: places in [`Self::schema`], ascending.
    ///
    /// # Errors
    /// What is stored cannot be read, or the first error of `to`.
    pub fn each_batch(
        &self,
        (of, columns): (&str, &[usize]),
        wanted: &Wanted,
        mut to: impl FnMut(RecordBatch) -> anyhow::Result<()>,
    ) -> anyhow::Result<ReadRows> {
        let dump = self.read(wanted)?;
        let mut table = Table::stored(columns)?;
        let is_spans = of == TABLES[0];
        let sessions = dump.sessions.iter();
        let is_forgotten = |session: &&Session| self.forgotten.has((session.host(), session.uuid));
        let forgotten = sessions.filter(is_forgotten).map(address);
        let forgotten: BTreeSet<usize> = forgotten.collect();
        dump.rows_after(&self.covered, chosen(wanted), |row| {
            if is_span(row) == is_spans && !forgotten.contains(&address(row.record.session)) {
                table.push(row);
            }
            match table.is_full() {
                true => to(table.take()?),
                false => Ok(()),
            }
        })?;
        to(table.take()?)?;
        let damage = dump
            .damage
            .iter()
            .chain(&dump.gone())
            .map(ToString::to_string)
            .collect();
        Ok(ReadRows { damage })
    }

    fn read(&self, wanted: &Wanted) -> anyhow::Result<Dump> {
        let mut builder = DumpBuilder::new().bare();
        let choice = &wanted.choice;
        let is_chosen = |of: &&CoveredSession| choice.host_passes(&of.host);
        let covered: Vec<_> = self.covered.iter().filter(is_chosen).cloned().collect();
        let source = || Rest {
            source: self.source.clone(),
            done: self.done.clone(),
        };
        if self.is_objects {
            builder
                .resume(&covered)
                .map_err(|damage| anyhow::anyhow!("{damage}"))?;
            let source = source();
            compact::read_schema_of(&source, &covered, &mut builder)?;
            if source.list(RAW).context(RAW)?.is_empty() {
                builder.choose(choice.clone());
                return Ok(builder.finish());
            }
        }
        // By its path a directory would be read as it is, with the segments that are done.
        let path = match self.is_objects {
            true => PathBuf::from(format!("file://{}", self.place)),
            false => PathBuf::from(&self.place),
        };
        let open = |path: &Path| -> anyhow::Result<Opened> {
            match self.is_objects {
                true => Ok(Opened::Objects(Box::new(source()))),
                false => {
                    let shown = || path.display().to_string();
                    let file = File::open(path).with_context(shown)?;
                    Ok(Opened::File(path.to_owned(), file))
                }
            }
        };
        store::read(builder, &[path], (&times(wanted), choice), open)
    }
}

/// An address as it is, or the path of what is there.
fn absolute(place: &str) -> anyhow::Result<String> {
    match is_bucket(place) {
        true => Ok(place.to_owned()),
        false => Ok(compact::path(place)?.display().to_string()),
    }
}

fn is_bucket(place: &str) -> bool {
    store_url(Path::new(place)).is_some()
}

fn source(place: &str) -> anyhow::Result<Source> {
    Ok(match is_bucket(place) {
        true => Arc::new(Bucket::open(place).with_context(|| place.to_owned())?),
        false => Arc::new(DirectorySource::new(Path::new(place))),
    })
}

/// Where a session of a dump is: by it sessions are told apart.
fn address(session: &Session) -> usize {
    std::ptr::from_ref(session) as usize
}

/// Whether a row belongs to the table of spans.
fn is_span(row: &Row<'_, '_>) -> bool {
    compact::table_of(row) == TABLES[0]
}

/// The segments that may hold wanted rows.
fn times(wanted: &Wanted) -> Filter {
    let mut filter = Filter::new();
    wanted.from_ns.map(|ns| filter.from_wall_ns(ns));
    let to_ns = wanted.to_ns.filter(|_| !wanted.is_to_of_starts);
    to_ns.map(|ns| filter.to_wall_ns(ns));
    filter
}

/// The rows: those of other times are given, too, so that what they say of losses does not depend on times.
fn chosen(wanted: &Wanted) -> Chosen {
    let mut names = Filter::new();
    for name in &wanted.names {
        names.name(name);
    }
    Chosen {
        records: Filter::new(),
        conditions: (!wanted.names.is_empty()).then_some(names),
    }
}

/// A store without the segments whose rows are in the tables.
struct Rest {
    source: Source,
    done: Arc<BTreeSet<String>>,
}

impl ObjectSource for Rest {
    fn list(&self, prefix: &str) -> io::Result<Vec<ListedObject>> {
        let mut listed = self.source.list(prefix)?;
        listed.retain(|object| !self.done.contains(&object.name));
        Ok(listed)
    }

    fn get(&self, name: &str, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.source.get(name, range)
    }

    fn ends(&self, objects: &[ListedObject], bytes: u64) -> Vec<io::Result<Vec<u8>>> {
        self.source.ends(objects, bytes)
    }

    fn open(&self, name: &str) -> io::Result<File> {
        self.source.open(name)
    }

    fn open_range(&self, name: &str, range: Range<u64>) -> io::Result<File> {
        self.source.open_range(name, range)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.source.path(name)
    }
}
