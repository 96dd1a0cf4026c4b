//! How programs write their log whose trace is compared with it, field by field.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::span::Record;
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// `␞name␟value` for each field.
pub(crate) struct Fields;

impl<'w> FormatFields<'w> for Fields {
    fn format_fields<R: RecordFields>(&self, writer: Writer<'w>, fields: R) -> fmt::Result {
        fields.record(&mut Written(writer));
        Ok(())
    }

    fn add_fields(
        &self,
        current: &'w mut FormattedFields<Self>,
        fields: &Record<'_>,
    ) -> fmt::Result {
        self.format_fields(current.as_writer(), fields)
    }
}

struct Written<'w>(Writer<'w>);

impl Visit for Written<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing into a text does not fail.
        let _ = write!(self.0, "␞{}␟{value:?}", field.name());
    }
}

/// `LEVEL│TARGET│SPAN FIELDS│…│FIELDS`, outermost span first.
pub(crate) struct Line;

impl<S: Subscriber + for<'l> LookupSpan<'l>> FormatEvent<S, Fields> for Line {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Fields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let about = event.metadata();
        write!(writer, "{}│{}│", about.level(), about.target())?;
        for span in context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
        {
            let extensions = span.extensions();
            let fields = extensions.get::<FormattedFields<Fields>>();
            let fields = fields.map_or("", |fields| fields.fields.as_str());
            write!(writer, "{}{fields}│", span.name())?;
        }
        context.format_fields(writer.by_ref(), event)?;
        writeln!(writer)
    }
}
