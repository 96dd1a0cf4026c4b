//! Rows gathered by their rings until they are written: what is the same for all of a ring or of a page, or
//! counts on in it, takes no room then, and no time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int32Builder, Int64Builder};
use ringmark_decoder::{Row, escape};

use crate::columns::{Key, NULL, Values, Writer};
use crate::parquet_properties::properties;
use crate::table::{known, signed, stored_schema};

/// Rows that are gathered, at most. They are smaller the more there are.
const ROWS: usize = 64 << 10;
/// Bytes of their arguments, at most.
const ARGS_BYTES: usize = 4 << 20;
/// In place of a number that is not known: all others are positive.
const NONE: i64 = -1;
/// Texts, and rings, that are found by their addresses or slots.
const RECENT_WHATS: usize = 1 << 12;
const RECENT_RINGS: usize = 1 << 8;
/// Columns with few values, and whether the file says their bounds.
const KEYED: [(&str, bool); 17] = [
    ("kind", true),
    ("name", true),
    ("target", true),
    ("level", true),
    ("host", true),
    ("service", true),
    ("session", true),
    ("pid", true),
    ("tid", true),
    ("thread", true),
    ("ring", true),
    ("page", true),
    ("depth", true),
    ("lost_before", true),
    ("args", false),
    ("zero_ns", true),
    ("clock_err_ns", true),
];

/// A text by its number; [`NULL`]: it is empty.
type Text = u32;

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct What {
    kind: Text,
    name: Text,
    target: Text,
    level: Text,
}

/// Rows of a ring that follow each other: those of a page.
struct Place {
    page: i64,
    tid: i64,
    thread: Text,
    lost_before: i64,
    rows: u32,
}

/// What only one row has.
struct Cells {
    start_ns: i64,
    took_ns: i64,
    zero_ns: i64,
    error_ns: i64,
    index: i32,
    depth: i32,
    what: u32,
    /// Where its arguments begin and end.
    args: (u32, u32),
    is_truncated: bool,
}

/// The rows of a ring.
struct Ring {
    /// Address of its session, and its number.
    id: (usize, u64),
    host: Text,
    service: Text,
    session: Text,
    pid: i64,
    places: Vec<Place>,
    rows: Vec<Cells>,
}

/// What is gathered.
struct Gathered {
    texts: Values,
    whats: Vec<What>,
    what_numbers: HashMap<What, u32>,
    /// For the addresses of some texts, what was last there.
    recent_whats: Vec<u32>,
    rings: Vec<Ring>,
    ring_numbers: HashMap<(usize, u64), usize>,
    /// For some slots, the ring that was last there.
    recent_rings: [usize; RECENT_RINGS],
    args: Vec<u8>,
    rows: usize,
}

/// Rows of a file in the making.
pub(crate) struct Rows {
    writer: Writer,
    gathered: Gathered,
}

impl Rows {
    pub(crate) fn new() -> anyhow::Result<Self> {
        let writer = Writer::new(stored_schema(), &KEYED, properties()?)?;
        let gathered = Gathered::new();
        Ok(Self { writer, gathered })
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &Row<'_, '_>) -> anyhow::Result<()> {
        self.gathered.push(row);
        if self.gathered.rows >= ROWS || self.gathered.args.len() >= ARGS_BYTES {
            self.flush()?;
        }
        Ok(())
    }

    /// Bytes that were written.
    pub(crate) fn bytes(&self) -> usize {
        self.writer.bytes()
    }

    /// The bytes of the file.
    pub(crate) fn finish(mut self) -> anyhow::Result<Vec<u8>> {
        self.flush()?;
        self.writer.finish()
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        if self.gathered.rows > 0 {
            self.gathered.write(&mut self.writer)?;
            self.gathered = Gathered::new();
        }
        Ok(())
    }
}

impl Gathered {
    fn new() -> Self {
        Self {
            texts: Values::new(false),
            whats: Vec::new(),
            what_numbers: HashMap::new(),
            recent_whats: vec![0; RECENT_WHATS],
            rings: Vec::new(),
            ring_numbers: HashMap::new(),
            recent_rings: [0; RECENT_RINGS],
            args: Vec::new(),
            rows: 0,
        }
    }

    fn push(&mut self, row: &Row<'_, '_>) {
        let record = row.record;
        let wall_ns = record.wall_ns();
        let number = |ns: Option<u64>| ns.map_or(NONE, signed);
        let from = self.args.len() as u32;
        row.json_args(&mut self.args);
        let cells = Cells {
            start_ns: number(row.start_ns),
            took_ns: number(row.dur_ns),
            zero_ns: signed(wall_ns.saturating_sub(record.t_ns)),
            error_ns: number(record.session.clock.error_ns(record.t_ns)),
            index: i32::try_from(row.index()).unwrap_or(i32::MAX),
            depth: row
                .depth
                .map_or(-1, |depth| i32::try_from(depth).unwrap_or(i32::MAX)),
            what: self.what(row),
            args: (from, self.args.len() as u32),
            is_truncated: row.is_truncated,
        };
        self.rows += 1;
        let ring = self.ring(row);
        let (page, lost_before) = (signed(record.page.number.0), signed(row.lost_before));
        let last = self.rings[ring].places.last_mut();
        match last.filter(|place| place.page == page && place.lost_before == lost_before) {
            Some(place) => place.rows += 1,
            None => {
                let place = Place {
                    page,
                    tid: known(record.tid()).map_or(NONE, i64::from),
                    thread: self.text(row.thread()),
                    lost_before,
                    rows: 1,
                };
                self.rings[ring].places.push(place);
            }
        }
        self.rings[ring].rows.push(cells);
    }

    /// The number of a text, which is kept as it is shown.
    fn text(&mut self, text: &[u8]) -> Text {
        match text {
            [] => NULL,
            text => self.texts.number(&shown(text)),
        }
    }

    /// The number of what a row is of.
    fn what(&mut self, row: &Row<'_, '_>) -> u32 {
        let (name, target) = (row.name, row.target);
        let level = row.level().map_or("", |level| level.name());
        let address = name.as_ptr() as usize ^ target.as_ptr() as usize;
        let recent = (address >> 4 ^ address >> 14) % RECENT_WHATS;
        let number = self.recent_whats[recent];
        if let Some(what) = self.whats.get(number as usize) {
            let texts = [row.kind.as_bytes(), name, target, level.as_bytes()];
            let known = [what.kind, what.name, what.target, what.level];
            let is_known = |(text, known): (&[u8], Text)| match known {
                NULL => text.is_empty(),
                known => self.texts.get(known) == text,
            };
            if texts.into_iter().zip(known).all(is_known) {
                return number;
            }
        }
        let what = What {
            kind: self.text(row.kind.as_bytes()),
            name: self.text(name),
            target: self.text(target),
            level: self.text(level.as_bytes()),
        };
        let next = self.whats.len() as u32;
        let number = *self.what_numbers.entry(what).or_insert(next);
        if number == next {
            self.whats.push(what);
        }
        self.recent_whats[recent] = number;
        number
    }

    /// The place of a row's ring.
    fn ring(&mut self, row: &Row<'_, '_>) -> usize {
        let (record, session) = (row.record, row.record.session);
        let id = (std::ptr::from_ref(session) as usize, record.ring().0);
        let recent = record.slot().0 as usize % RECENT_RINGS;
        let number = self.recent_rings[recent];
        if self.rings.get(number).is_some_and(|ring| ring.id == id) {
            return number;
        }
        let next = self.rings.len();
        let number = *self.ring_numbers.entry(id).or_insert(next);
        if number == next {
            let ring = Ring {
                id,
                host: self.text(session.host()),
                service: self.text(session.service()),
                session: self.text(session.uuid.to_string().as_bytes()),
                pid: known(record.pid()).map_or(NONE, i64::from),
                places: Vec::new(),
                rows: Vec::new(),
            };
            self.rings.push(ring);
        }
        self.recent_rings[recent] = number;
        number
    }

    /// Writes the rows as a page of each column.
    fn write(&self, to: &mut Writer) -> anyhow::Result<()> {
        self.write_places(to)?;
        self.write_whats(to)?;
        let none = |number: i64| Some(number).filter(|number| *number != NONE);
        let rows = || self.rings.iter().flat_map(|ring| &ring.rows);
        for (name, of) in [
            ("ts_ns", (|cells| cells.start_ns) as fn(&Cells) -> i64),
            ("dur_ns", |cells| cells.took_ns),
        ] {
            let mut column = Int64Builder::with_capacity(self.rows);
            rows().for_each(|cells| column.append_option(none(of(cells))));
            to.array(name, &(Arc::new(column.finish()) as _))?;
        }
        let mut index = Int32Builder::with_capacity(self.rows);
        rows().for_each(|cells| index.append_value(cells.index));
        to.array("idx", &(Arc::new(index.finish()) as _))?;
        let mut truncated = BooleanBuilder::with_capacity(self.rows);
        rows().for_each(|cells| truncated.append_value(cells.is_truncated));
        to.array("truncated", &(Arc::new(truncated.finish()) as _))?;
        numbers::<4>(to, "depth", rows().map(|cells| (cells.depth.into(), 1)))?;
        numbers::<8>(to, "zero_ns", rows().map(|cells| (cells.zero_ns, 1)))?;
        numbers::<8>(to, "clock_err_ns", rows().map(|cells| (cells.error_ns, 1)))?;
        // Each begins and ends with ASCII: if they are UTF-8 together, each one is.
        let is_text = std::str::from_utf8(&self.args).is_ok();
        to.keyed("args", |page| {
            for (from, end) in rows().map(|cells| cells.args) {
                let args = &self.args[from as usize..end as usize];
                match (args.is_empty(), is_text) {
                    (true, _) => page.push(NULL, 1),
                    (false, true) => page.push_value(args, 1),
                    (false, false) => page.push_value(&shown(args), 1),
                }
            }
        })?;
        to.end_page(self.rows)
    }

    /// Writes what is the same for all rows of a ring or of a page.
    fn write_places(&self, to: &mut Writer) -> anyhow::Result<()> {
        let rings = self.rings.iter();
        let of_rings = rings.clone().map(|ring| (ring, ring.rows.len() as u32));
        for (name, of) in [
            ("host", (|ring| ring.host) as fn(&Ring) -> Text),
            ("service", |ring| ring.service),
            ("session", |ring| ring.session),
        ] {
            self.write_texts(
                to,
                name,
                of_rings.clone().map(|(ring, rows)| (of(ring), rows)),
            )?;
        }
        numbers::<4>(
            to,
            "pid",
            of_rings.clone().map(|(ring, rows)| (ring.pid, rows)),
        )?;
        numbers::<8>(
            to,
            "ring",
            of_rings.map(|(ring, rows)| (signed(ring.id.1), rows)),
        )?;
        let places = rings.flat_map(|ring| &ring.places);
        self.write_texts(
            to,
            "thread",
            places.clone().map(|place| (place.thread, place.rows)),
        )?;
        numbers::<4>(
            to,
            "tid",
            places.clone().map(|place| (place.tid, place.rows)),
        )?;
        numbers::<8>(
            to,
            "page",
            places.clone().map(|place| (place.page, place.rows)),
        )?;
        numbers::<8>(
            to,
            "lost_before",
            places.map(|place| (place.lost_before, place.rows)),
        )
    }

    fn write_whats(&self, to: &mut Writer) -> anyhow::Result<()> {
        for (name, of) in [
            ("kind", (|what| what.kind) as fn(&What) -> Text),
            ("name", |what| what.name),
            ("target", |what| what.target),
            ("level", |what| what.level),
        ] {
            let rows = self.rings.iter().flat_map(|ring| &ring.rows);
            self.write_texts(
                to,
                name,
                rows.map(|cells| (of(&self.whats[cells.what as usize]), 1)),
            )?;
        }
        Ok(())
    }

    /// Writes a page of texts.
    fn write_texts(
        &self,
        to: &mut Writer,
        name: &str,
        rows: impl Iterator<Item = (Text, u32)>,
    ) -> anyhow::Result<()> {
        // By number of the text here, its key there.
        let mut keys = vec![NULL; self.texts.len()];
        to.keyed(name, |page| {
            for (text, count) in rows {
                let key = match keys.get(text as usize).copied() {
                    None => NULL,
                    Some(NULL) => {
                        let key = page.key(self.texts.get(text));
                        keys[text as usize] = key;
                        key
                    }
                    Some(key) => key,
                };
                page.push(key, count);
            }
        })
    }
}

/// Writes a page of numbers of `BYTES` bytes.
fn numbers<const BYTES: usize>(
    to: &mut Writer,
    name: &str,
    rows: impl Iterator<Item = (i64, u32)>,
) -> anyhow::Result<()> {
    to.keyed(name, |page| {
        let mut last: (i64, Key) = (NONE, NULL);
        for (number, count) in rows {
            if number != last.0 {
                let key = match number {
                    NONE => NULL,
                    number => page.key(&number.to_le_bytes()[..BYTES]),
                };
                last = (number, key);
            }
            page.push(last.1, count);
        }
    })
}

/// A text as it is, or escaped if it is no UTF-8.
fn shown(text: &[u8]) -> Cow<'_, [u8]> {
    if std::str::from_utf8(text).is_ok() {
        return Cow::Borrowed(text);
    }
    let mut shown = Vec::new();
    escape::text(text, &mut shown);
    Cow::Owned(String::from_utf8_lossy(&shown).into_owned().into_bytes())
}
