//! What two looks at sessions say, as text that does not move, and as JSON.

use std::io::Write;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::model::{Model, OpenRow, RingRow, SessionRow};
use super::names::{NameRow, Order};
use super::panels::{Look, Rows, panel};
use super::ui::{Panel, Ui};
use super::watch::Watch;
use crate::options::rows::LinesOption;
use ringmark_console::json;
use ringmark_console::{Sink, Style};
use ringmark_decoder::SampledKind;

/// The figures of two looks, this long apart.
pub(crate) fn figures(watch: &mut Watch, apart: Duration) -> Model {
    let mut model = Model::default();
    model.take(watch.look());
    thread::sleep(apart);
    model.take(watch.look());
    model
}

/// Writes them as text: a table each of sessions, names, open spans and rings.
///
/// # Errors
/// Those of writing.
pub(crate) fn write(
    out: &mut Sink,
    model: &Model,
    order: Order,
    lines: LinesOption,
    columns: Option<usize>,
) -> anyhow::Result<()> {
    let ui = Ui::new(order);
    let style = Style::detect();
    let look = Look {
        style,
        trend: None,
        has_pids: model.processes() > 1,
    };
    for (number, one) in Panel::ALL.into_iter().enumerate() {
        let mut titled = panel(one, model, &ui, look, Rows::ALL);
        let space = if number > 0 { "\n" } else { "" };
        writeln!(out, "{space}{}", titled.title)?;
        if titled.rows > 0 {
            lines.cut(&mut titled.table);
            titled.table.fit(columns);
            titled.table.write(out, style)?;
        }
    }
    Ok(())
}

/// An object for each session.
pub(crate) fn objects(model: &Model, order: Order) -> Vec<Value> {
    let sessions = model.sessions();
    let names = model.names(order);
    let object = |session: &&SessionRow| {
        // Names are of a process: they stand with its first session.
        let pid = session.about.pid;
        let first = sessions.iter().find(|other| other.about.pid == pid);
        let is_first = first.is_some_and(|first| first.about.uuid == session.about.uuid);
        let names = names.iter().filter(|name| is_first && name.pid == pid);
        session_json(session, names, model)
    };
    sessions.iter().map(object).collect()
}

fn session_json<'r>(
    session: &SessionRow,
    names: impl Iterator<Item = &'r NameRow>,
    model: &Model,
) -> Value {
    let open = session.open.iter().map(|thread| {
        open_json(&OpenRow {
            pid: session.about.pid,
            thread: thread.clone(),
        })
    });
    let coverage = model.coverage(Some(session.about.uuid));
    let fields = json!({
        "name": session.about.name,
        "mode": session.about.mode.map(ringmark_format::session::Mode::name),
        "events": session.events.total,
        "events_per_s": session.events.per_s,
        "lost": session.lost.total,
        "lost_per_s": session.lost.per_s,
        "fill_percent": session.fill_percent,
        "window_s": session.window_ns.map(|ns| ns as f64 / 1e9),
        "ring_bytes": session.ring_bytes,
        "sampled_percent": coverage.percent().unwrap_or(100.0),
        "threads": session.rings.iter().map(ring_json).collect::<Vec<_>>(),
        "names": names.map(name_json).collect::<Vec<_>>(),
        "open_spans": open.collect::<Vec<_>>(),
    });
    json::object("top", &session.about.head, fields)
}

fn ring_json(ring: &RingRow) -> Value {
    json!({
        "tid": ring.tid,
        "thread": ring.thread,
        "ended": ring.is_over,
        "events": ring.events.total,
        "events_per_s": ring.events.per_s,
        "lost": ring.lost.total,
        "lost_per_s": ring.lost.per_s,
        "fill_percent": ring.fill_percent,
        "window_s": ring.window_ns.map(|ns| ns as f64 / 1e9),
        "lasts_s": ring.filling().map(|filling| filling.lasts_s()),
        "ring_bytes": ring.ring_bytes,
    })
}

fn name_json(name: &NameRow) -> Value {
    let of = match name.kind {
        SampledKind::Span => "span",
        SampledKind::Function => "function",
        SampledKind::Event => "event",
    };
    json!({
        "of": of,
        "name": name.name,
        "target": Some(&name.target).filter(|target| !target.is_empty()),
        "per_s": name.per_s,
        "self_percent": name.own.map(|share| 100.0 * share),
        "total_percent": name.total.map(|share| 100.0 * share),
        "mean_ns": name.mean_ns.map(|ns| ns as u64),
        "max_ns": name.max_ns,
    })
}

fn open_json(row: &OpenRow) -> Value {
    let spans = row.thread.spans.iter();
    let spans = spans.map(|(name, ns)| json!({"name": name, "open_ns": ns}));
    json!({
        "tid": row.thread.tid,
        "thread": row.thread.thread,
        "spans": spans.collect::<Vec<_>>(),
        "deeper": row.thread.deeper,
    })
}
