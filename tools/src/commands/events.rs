//! `events`: lists event types, with their fields and whether they are on, or switches them.

use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use ringmark_console::json::{Head, JsonOption, Line};
use ringmark_console::units::counted;
use ringmark_console::wide::WideOption;
use ringmark_console::{Exit, Sink, Style, Table, json, printable};
use ringmark_decoder::{EventType, Field, Filter, Session};
use ringmark_format::schema::Level;
use serde_json::json;

use crate::commands::events_switch::SwitchOptions;
use crate::input::rings;
use crate::input::trace_files::Input;
use crate::options::rows::LinesOption;

/// List event types with their fields and whether they are on, or switch them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
--enable and --disable switch types of a running process. Types that are
registered later follow the pattern, too.

Examples:
  ringmark events run.rmk --json
  ringmark events -p 812
  ringmark events -p 812 --disable '*' --category noise
  ringmark events -p 812 --enable 'request.*' --level debug
  ringmark events -p 812 --enable '*' --inside 'order[id=42]'")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    switch: SwitchOptions,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    lines: LinesOption,
    #[command(flatten)]
    wide: WideOption,
}

/// One event type. Whether it is on is known for running processes only, and for their first 32,768 types.
struct Row {
    head: Head,
    on: Option<bool>,
    level: Option<&'static str>,
    kind: &'static str,
    name: String,
    target: String,
    category: String,
    fields: Vec<String>,
    place: String,
    /// Its records say what becomes of spans: `cat` has lines for them with `--raw` only.
    is_bookkeeping: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let process = self.input.process()?;
        if let Some(request) = process.and_then(|pid| self.switch.request(pid)) {
            return request.send();
        }
        let mut rows = match process {
            Some(pid) => of_process(pid)?,
            None => of_files(&self.input)?,
        };
        rows.sort_by(|a, b| (&a.target, &a.name).cmp(&(&b.target, &b.name)));
        let mut out = if self.json.is_on() {
            Sink::direct()
        } else {
            Sink::paged().within(self.wide.columns())
        };
        if self.json.is_on() {
            rows.iter()
                .take(self.lines.of(rows.len()))
                .try_for_each(|row| writeln!(out, "{}", Line(as_json(row))))?;
        } else {
            let columns = self.wide.columns();
            let all = rows.len();
            rows.retain(|row| columns.is_none() || !row.is_bookkeeping);
            let mut table = table(&rows);
            self.lines.cut(&mut table);
            table.foot(left_out(all - rows.len()));
            table.fit(columns);
            table.write(&mut out, Style::detect())?;
        }
        out.finish()?;
        Ok(Exit::FINE)
    }
}

fn of_files(input: &Input) -> anyhow::Result<Vec<Row>> {
    let dump = input.read_for(&Filter::new())?;
    Ok(dump
        .sessions
        .iter()
        .flat_map(|session| rows(session, |_| None))
        .collect())
}

fn of_process(pid: u32) -> anyhow::Result<Vec<Row>> {
    let dump = rings::snapshot(pid)?;
    let taps = rings::taps(pid)?;
    let mut found = Vec::new();
    for session in &dump.sessions {
        let tap = taps.iter().find(|tap| tap.session().uuid() == session.uuid);
        found.extend(rows(session, |ty| is_on(tap?.session(), ty)));
    }
    Ok(found)
}

/// Whether a type is on in a running process; unknown of types beyond the bitmap, which have no bit.
fn is_on(session: &ringmark_reader::Session, ty: &EventType) -> Option<bool> {
    let words = session.ring().enabled_words();
    let word = words.get(ty.id.0 as usize / 64)?;
    Some(word.load(Relaxed) >> (ty.id.0 % 64) & 1 == 1)
}

fn rows(session: &Session, on: impl Fn(&EventType) -> Option<bool>) -> Vec<Row> {
    let known = session.schema.types().iter().filter(|ty| ty.known);
    known.map(|ty| row(session, ty, on(ty))).collect()
}

fn row(session: &Session, ty: &EventType, on: Option<bool>) -> Row {
    let text = |bytes: &[u8]| printable(&String::from_utf8_lossy(bytes));
    let fields = ty.fields.iter().enumerate().filter(|(i, _)| ty.shows(*i));
    let place = if ty.origin.file.is_empty() {
        String::new()
    } else {
        format!("{}:{}", text(&ty.origin.file), ty.line)
    };
    Row {
        head: Head::of(session),
        on,
        level: ty.level.map(Level::name),
        kind: ty.kind(),
        name: text(&ty.name),
        target: text(&ty.origin.target),
        category: text(&ty.origin.category),
        fields: fields.map(|(_, field)| field_text(field)).collect(),
        place,
        is_bookkeeping: ty.is_bookkeeping(),
    }
}

/// The line about types that a person did not ask for.
fn left_out(types: usize) -> Option<String> {
    let types = (types > 0).then(|| counted(types as u64, "type"))?;
    Some(format!("{types} of records about spans: --wide shows all"))
}

/// `name: kind`, for an array `name: [kind; n]`.
fn field_text(field: &Field) -> String {
    let kind = field.kind.map_or("?", |kind| kind.name());
    let name = printable(&String::from_utf8_lossy(&field.name));
    match field.count {
        0 => format!("{name}: {kind}"),
        n => format!("{name}: [{kind}; {n}]"),
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = Table::new(&[
        "ON", "LEVEL", "KIND", "NAME", "TARGET", "CATEGORY", "FIELDS",
    ]);
    for row in rows {
        let on = match row.on {
            None => "-",
            Some(true) => "on",
            Some(false) => "off",
        };
        table.row(vec![
            on.to_owned(),
            row.level.unwrap_or("-").to_owned(),
            row.kind.to_owned(),
            row.name.clone(),
            row.target.clone(),
            row.category.clone(),
            row.fields.join(", "),
        ]);
    }
    table
}

fn as_json(row: &Row) -> serde_json::Value {
    let known = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
    let fields = json!({
        "of": row.kind,
        "on": row.on,
        "level": row.level,
        "name": known(&row.name),
        "target": known(&row.target),
        "category": known(&row.category),
        "fields": row.fields,
        "place": known(&row.place),
    });
    json::object("event_type", &row.head, fields)
}
