//! Rows gathered in columns, with the names, the order and the meaning that `ringmark export --format csv` gives
//! them. Integers are signed, as all engines read them.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use ringmark_decoder::{ArgColumn, ArgKind, Row, Value, escape, value_text};
use ringmark_format::schema::Level;

/// Places of columns in [`stored_schema`]: arguments, and what is known of the clock.
const ARGS: usize = 18;
const CLOCK: [usize; 2] = [19, 20];
/// Rows that are gathered before they are written.
pub(crate) const ROWS: usize = 16 << 10;

/// Columns in the making.
pub(crate) struct Table {
    schema: SchemaRef,
    names: Vec<ArgColumn>,
    rows: usize,
    ts_ns: Int64Builder,
    dur_ns: Int64Builder,
    kind: StringBuilder,
    name: StringBuilder,
    target: StringBuilder,
    level: StringBuilder,
    host: StringBuilder,
    service: StringBuilder,
    session: StringBuilder,
    pid: Int32Builder,
    tid: Int32Builder,
    thread: StringBuilder,
    ring: Int64Builder,
    page: Int64Builder,
    idx: Int32Builder,
    depth: Int32Builder,
    lost_before: Int64Builder,
    truncated: BooleanBuilder,
    args: Vec<ArgBuilder>,
    others: StringBuilder,
    clock: ClockBuilders,
    /// Which of the columns of [`stored_schema`] there are, a bit for each.
    wanted: u32,
    /// The session of the row before: its address and its id as text.
    of_session: (usize, String),
    /// Memory that is used again.
    json: Vec<u8>,
}

/// What tables of a store have beside, if they are wanted.
#[derive(Default)]
struct ClockBuilders {
    zero_ns: Int64Builder,
    error_ns: Int64Builder,
}

/// The column of an argument.
enum ArgBuilder {
    Integer(Int64Builder),
    Float(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
}

impl Table {
    /// Without rows. Each of these arguments has a column.
    pub(crate) fn new(args: Vec<ArgColumn>) -> Self {
        let clock = CLOCK.iter().fold(0, |all, at| all | 1 << at);
        let schema = Arc::new(schema(&args));
        Self::with(args, schema, !clock)
    }

    /// Without rows, with these of the columns of [`stored_schema`], in ascending order.
    pub(crate) fn stored(columns: &[usize]) -> Result<Self, ArrowError> {
        let schema = Arc::new(stored_schema().project(columns)?);
        let wanted = columns.iter().fold(0, |all, at| all | 1 << at);
        Ok(Self::with(Vec::new(), schema, wanted))
    }

    fn with(args: Vec<ArgColumn>, schema: SchemaRef, wanted: u32) -> Self {
        Self {
            schema,
            wanted,
            clock: ClockBuilders::default(),
            args: args.iter().map(|arg| ArgBuilder::new(arg.kind)).collect(),
            names: args,
            rows: 0,
            ts_ns: Int64Builder::new(),
            dur_ns: Int64Builder::new(),
            kind: StringBuilder::new(),
            name: StringBuilder::new(),
            target: StringBuilder::new(),
            level: StringBuilder::new(),
            host: StringBuilder::new(),
            service: StringBuilder::new(),
            session: StringBuilder::new(),
            pid: Int32Builder::new(),
            tid: Int32Builder::new(),
            thread: StringBuilder::new(),
            ring: Int64Builder::new(),
            page: Int64Builder::new(),
            idx: Int32Builder::new(),
            depth: Int32Builder::new(),
            lost_before: Int64Builder::new(),
            truncated: BooleanBuilder::new(),
            others: StringBuilder::new(),
            of_session: (0, String::new()),
            json: Vec::new(),
        }
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Whether there are as many rows as are written at once.
    pub(crate) const fn is_full(&self) -> bool {
        self.rows >= ROWS
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: &Row<'_, '_>) {
        let record = row.record;
        let session = record.session;
        let address = std::ptr::from_ref(session) as usize;
        if self.of_session.0 != address {
            self.of_session = (address, session.uuid.to_string());
        }
        self.rows += 1;
        for at in (0..ARGS).filter(|at| self.wanted >> at & 1 == 1) {
            match at {
                0 => self.ts_ns.append_option(row.start_ns.map(signed)),
                1 => self.dur_ns.append_option(row.dur_ns.map(signed)),
                2 => self.kind.append_value(row.kind),
                3 => text(row.name, &mut self.name),
                4 => text(row.target, &mut self.target),
                5 => self.level.append_option(row.level().map(Level::name)),
                6 => text(session.host(), &mut self.host),
                7 => text(session.service(), &mut self.service),
                8 => self.session.append_value(&self.of_session.1),
                9 => self.pid.append_option(known(record.pid())),
                10 => self.tid.append_option(known(record.tid())),
                11 => text(row.thread(), &mut self.thread),
                12 => self.ring.append_value(signed(record.ring().0)),
                13 => self.page.append_value(signed(record.page.number.0)),
                14 => self.idx.append_value(small(row.index())),
                15 => self.depth.append_option(row.depth.map(small)),
                16 => self.lost_before.append_value(signed(row.lost_before)),
                _ => self.truncated.append_value(row.is_truncated),
            }
        }
        if self.wanted >> ARGS & 1 == 1 {
            self.push_args(row);
        }
        if self.wanted >> CLOCK[0] & 1 == 1 {
            let zero_ns = record.wall_ns().saturating_sub(record.t_ns);
            self.clock.zero_ns.append_value(signed(zero_ns));
        }
        if self.wanted >> CLOCK[1] & 1 == 1 {
            let error_ns = session.clock.error_ns(record.t_ns);
            self.clock.error_ns.append_option(error_ns.map(signed));
        }
    }

    fn push_args(&mut self, row: &Row<'_, '_>) {
        let Self {
            names,
            args,
            json,
            rows,
            ..
        } = self;
        json.clear();
        row.split_args(
            names,
            |place, (field, value), budget| match &mut args[place] {
                ArgBuilder::Text(column) => {
                    let mut shown = Vec::new();
                    let is_there = value_text((field, value), budget, &mut shown);
                    if is_there {
                        text_or_empty(&shown, column);
                    }
                    is_there || matches!(value, Value::None)
                }
                ArgBuilder::Integer(column) => append_integer(value, column),
                ArgBuilder::Float(column) => append_float(value, column),
                ArgBuilder::Bool(column) => append_bool(value, column),
            },
            json,
        );
        for column in args {
            column.fill(*rows);
        }
        match json.is_empty() {
            true => self.others.append_null(),
            false => text_or_empty(json, &mut self.others),
        }
    }

    /// The rows so far; afterwards there are none.
    pub(crate) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        let mut columns: Vec<(usize, ArrayRef)> = vec![
            (0, Arc::new(self.ts_ns.finish())),
            (1, Arc::new(self.dur_ns.finish())),
            (2, Arc::new(self.kind.finish())),
            (3, Arc::new(self.name.finish())),
            (4, Arc::new(self.target.finish())),
            (5, Arc::new(self.level.finish())),
            (6, Arc::new(self.host.finish())),
            (7, Arc::new(self.service.finish())),
            (8, Arc::new(self.session.finish())),
            (9, Arc::new(self.pid.finish())),
            (10, Arc::new(self.tid.finish())),
            (11, Arc::new(self.thread.finish())),
            (12, Arc::new(self.ring.finish())),
            (13, Arc::new(self.page.finish())),
            (14, Arc::new(self.idx.finish())),
            (15, Arc::new(self.depth.finish())),
            (16, Arc::new(self.lost_before.finish())),
            (17, Arc::new(self.truncated.finish())),
        ];
        columns.extend(self.args.iter_mut().map(|arg| (ARGS, arg.finish())));
        columns.push((ARGS, Arc::new(self.others.finish())));
        columns.push((CLOCK[0], Arc::new(self.clock.zero_ns.finish())));
        columns.push((CLOCK[1], Arc::new(self.clock.error_ns.finish())));
        columns.retain(|(at, _)| self.wanted >> at & 1 == 1);
        let columns = columns.into_iter().map(|(_, column)| column).collect();
        // There may be rows without columns: they are counted.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)
    }
}

/// The columns in tables of a store, with what is known of the clock behind the times: a database has no trace
/// to ask.
pub(crate) fn stored_schema() -> SchemaRef {
    let mut fields = schema(&[]).fields().to_vec();
    for (name, is_nullable) in [("zero_ns", false), ("clock_err_ns", true)] {
        fields.push(Arc::new(Field::new(name, DataType::Int64, is_nullable)));
    }
    Arc::new(Schema::new(fields))
}

fn schema(args: &[ArgColumn]) -> Schema {
    let field = |name: &str, kind, is_nullable| Field::new(name, kind, is_nullable);
    let mut fields = vec![
        field("ts_ns", DataType::Int64, true),
        field("dur_ns", DataType::Int64, true),
        field("kind", DataType::Utf8, false),
        field("name", DataType::Utf8, true),
        field("target", DataType::Utf8, true),
        field("level", DataType::Utf8, true),
        field("host", DataType::Utf8, true),
        field("service", DataType::Utf8, true),
        field("session", DataType::Utf8, false),
        field("pid", DataType::Int32, true),
        field("tid", DataType::Int32, true),
        field("thread", DataType::Utf8, true),
        field("ring", DataType::Int64, false),
        field("page", DataType::Int64, false),
        field("idx", DataType::Int32, false),
        field("depth", DataType::Int32, true),
        field("lost_before", DataType::Int64, false),
        field("truncated", DataType::Boolean, false),
    ];
    fields.extend(args.iter().map(|arg| {
        let mut name = b"arg_".to_vec();
        escape::text(&arg.name, &mut name);
        let kind = match arg.kind {
            ArgKind::Integer => DataType::Int64,
            ArgKind::Float => DataType::Float64,
            ArgKind::Bool => DataType::Boolean,
            ArgKind::Text => DataType::Utf8,
        };
        field(&String::from_utf8_lossy(&name), kind, true)
    }));
    fields.push(field("args", DataType::Utf8, true));
    Schema::new(fields)
}

impl ArgBuilder {
    fn new(kind: ArgKind) -> Self {
        match kind {
            ArgKind::Integer => Self::Integer(Int64Builder::new()),
            ArgKind::Float => Self::Float(Float64Builder::new()),
            ArgKind::Bool => Self::Bool(BooleanBuilder::new()),
            ArgKind::Text => Self::Text(StringBuilder::new()),
        }
    }

    /// Fills up to that many rows: the last one has no such argument.
    fn fill(&mut self, rows: usize) {
        use arrow_array::builder::ArrayBuilder;
        match self {
            Self::Integer(column) if column.len() < rows => column.append_null(),
            Self::Float(column) if column.len() < rows => column.append_null(),
            Self::Bool(column) if column.len() < rows => column.append_null(),
            Self::Text(column) if column.len() < rows => column.append_null(),
            _ => {}
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Integer(column) => Arc::new(column.finish()),
            Self::Float(column) => Arc::new(column.finish()),
            Self::Bool(column) => Arc::new(column.finish()),
            Self::Text(column) => Arc::new(column.finish()),
        }
    }
}

/// Appends an integer; `false`: it is none that fits, and stands among the other arguments.
fn append_integer(value: Value<'_>, column: &mut Int64Builder) -> bool {
    let number = match value {
        Value::U64(number) => i64::try_from(number).ok(),
        Value::I64(number) => Some(number),
        Value::None => return true,
        _ => None,
    };
    number
        .inspect(|number| column.append_value(*number))
        .is_some()
}

fn append_float(value: Value<'_>, column: &mut Float64Builder) -> bool {
    let number = match value {
        Value::F32(number) => f64::from(number),
        Value::F64(number) => number,
        value => return matches!(value, Value::None),
    };
    column.append_value(number);
    true
}

fn append_bool(value: Value<'_>, column: &mut BooleanBuilder) -> bool {
    let Value::Bool(is_so) = value else {
        return matches!(value, Value::None);
    };
    column.append_value(is_so);
    true
}

/// A number that all engines read: those beyond 2^63 are no times, and no numbers of pages.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that is small wherever it was written.
fn small(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

pub(crate) fn known(id: u32) -> Option<i32> {
    i32::try_from(id).ok().filter(|id| *id != 0)
}

/// Appends a text; null for an empty one.
pub(crate) fn text(bytes: &[u8], column: &mut StringBuilder) {
    match bytes {
        [] => column.append_null(),
        bytes => text_or_empty(bytes, column),
    }
}

/// Appends a text as it is, or escaped if it is no UTF-8.
fn text_or_empty(bytes: &[u8], column: &mut StringBuilder) {
    match std::str::from_utf8(bytes) {
        Ok(text) => column.append_value(text),
        Err(_) => {
            let mut shown = Vec::new();
            escape::text(bytes, &mut shown);
            column.append_value(String::from_utf8_lossy(&shown));
        }
    }
}
