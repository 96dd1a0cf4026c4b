//! The table of losses: events that are not there, where, and why.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::builder::{Int32Builder, Int64Builder, StringBuilder};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use ringmark_decoder::LossRow;

use super::added_file::AddedFile;
use super::tables::Lasting;
use super::time::HOUR_NS;
use crate::parquet_properties::properties;
use crate::table::{known, signed, text};

/// Losses by the hour of what comes after them.
#[derive(Default)]
pub(crate) struct Losses(BTreeMap<(u64, Lasting), Columns>);

#[derive(Default)]
struct Columns {
    file: Option<AddedFile>,
    ts_ns: Int64Builder,
    host: StringBuilder,
    service: StringBuilder,
    session: StringBuilder,
    pid: Int32Builder,
    tid: Int32Builder,
    ring: Int64Builder,
    page: Int64Builder,
    why: StringBuilder,
    events: Int64Builder,
}

impl Losses {
    pub(crate) fn schema() -> SchemaRef {
        let field = |name: &str, kind| Field::new(name, kind, true);
        Arc::new(Schema::new(vec![
            field("ts_ns", DataType::Int64),
            field("host", DataType::Utf8),
            field("service", DataType::Utf8),
            field("session", DataType::Utf8),
            field("pid", DataType::Int32),
            field("tid", DataType::Int32),
            field("ring", DataType::Int64),
            field("page", DataType::Int64),
            field("why", DataType::Utf8),
            field("events", DataType::Int64),
        ]))
    }

    pub(crate) fn push(&mut self, loss: &LossRow<'_>, lasting: Lasting) {
        let hour = loss.ts_ns / HOUR_NS;
        let to = self.0.entry((hour, lasting)).or_default();
        let file = to.file.get_or_insert_with(|| AddedFile::of_hour(hour));
        file.count(Some(loss.ts_ns));
        let (session, page) = (loss.session, loss.page);
        to.ts_ns.append_value(signed(loss.ts_ns));
        text(session.host(), &mut to.host);
        text(session.service(), &mut to.service);
        to.session.append_value(session.uuid.to_string());
        to.pid.append_option(known(session.pid()));
        to.tid
            .append_option(page.and_then(|page| known(page.header.tid)));
        to.ring.append_option(page.map(|page| signed(page.ring.0)));
        to.page
            .append_option(page.map(|page| signed(page.number.0)));
        to.why.append_value(loss.why);
        to.events.append_value(signed(loss.events));
    }

    /// The files, without names, and their bytes.
    pub(crate) fn finish(self) -> anyhow::Result<Vec<(AddedFile, Lasting, Vec<u8>)>> {
        let mut files = Vec::new();
        for ((_, lasting), mut of) in self.0 {
            let batch = RecordBatch::try_new(
                Self::schema(),
                vec![
                    Arc::new(of.ts_ns.finish()),
                    Arc::new(of.host.finish()),
                    Arc::new(of.service.finish()),
                    Arc::new(of.session.finish()),
                    Arc::new(of.pid.finish()),
                    Arc::new(of.tid.finish()),
                    Arc::new(of.ring.finish()),
                    Arc::new(of.page.finish()),
                    Arc::new(of.why.finish()),
                    Arc::new(of.events.finish()),
                ],
            )?;
            let mut writer = ArrowWriter::try_new(Vec::new(), Self::schema(), Some(properties()?))?;
            writer.write(&batch)?;
            let bytes = writer.into_inner()?;
            files.extend(of.file.map(|file| (file, lasting, bytes)));
        }
        Ok(files)
    }
}
