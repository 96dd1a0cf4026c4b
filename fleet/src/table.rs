//! Rows gathered in columns, with the names, the order and the meaning that `ringmark scan` gives
//! them. Integers are signed, as all engines read them.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int32Builder, Int64Builder, StringBuilder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use ringmark_decoder::{ArgColumn, ArgKind, Row, Value, escape, value_text};

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
    /// The session of the row before: its address and its id as text.
    of_session: (usize, String),
    /// Memory that is used again.
    json: Vec<u8>,
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
        Self {
            schema: Arc::new(schema(&args)),
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
        self.ts_ns.append_option(row.start_ns.map(signed));
        self.dur_ns.append_option(row.dur_ns.map(signed));
        self.kind.append_value(row.kind);
        text(row.name, &mut self.name);
        text(row.target, &mut self.target);
        self.level
            .append_option(row.level().map(|level| level.name()));
        text(session.host(), &mut self.host);
        text(session.service(), &mut self.service);
        self.session.append_value(&self.of_session.1);
        self.pid.append_option(known(record.pid()));
        self.tid.append_option(known(record.tid()));
        text(row.thread(), &mut self.thread);
        self.ring.append_value(signed(record.ring().0));
        self.page.append_value(signed(record.page.number.0));
        self.idx
            .append_value(i32::try_from(row.index()).unwrap_or(i32::MAX));
        let depth = row
            .depth
            .map(|depth| i32::try_from(depth).unwrap_or(i32::MAX));
        self.depth.append_option(depth);
        self.lost_before.append_value(signed(row.lost_before));
        self.truncated.append_value(row.is_truncated);
        self.push_args(row);
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
        self.rows = 0;
        let mut columns: Vec<ArrayRef> = vec![
            Arc::new(self.ts_ns.finish()),
            Arc::new(self.dur_ns.finish()),
            Arc::new(self.kind.finish()),
            Arc::new(self.name.finish()),
            Arc::new(self.target.finish()),
            Arc::new(self.level.finish()),
            Arc::new(self.host.finish()),
            Arc::new(self.service.finish()),
            Arc::new(self.session.finish()),
            Arc::new(self.pid.finish()),
            Arc::new(self.tid.finish()),
            Arc::new(self.thread.finish()),
            Arc::new(self.ring.finish()),
            Arc::new(self.page.finish()),
            Arc::new(self.idx.finish()),
            Arc::new(self.depth.finish()),
            Arc::new(self.lost_before.finish()),
            Arc::new(self.truncated.finish()),
        ];
        columns.extend(self.args.iter_mut().map(ArgBuilder::finish));
        columns.push(Arc::new(self.others.finish()));
        RecordBatch::try_new(self.schema.clone(), columns)
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
