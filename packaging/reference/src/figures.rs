//! The page of figures, which monitoring reads.

use ringmark_collector::Figures;
use ringmark_reader::stream::StreamFigures;

use crate::markdown::{cell, code, table};

const START: &str = "\
# Figures for monitoring

The collector serves its figures in Prometheus' text format, at `http://ADDRESS/metrics`, with `ringmark collect
--metrics ADDRESS`. With `--json` it prints those of the whole collector each second, under the names without
`ringmark_collector_`. `ringmark stream --json` prints the streamer's: [JSON.md](../../format-spec/JSON.md#stream) has
each of its keys. `docs/build` writes this page from the code that serves them.

";

const STREAMER: &str = "
Figures of a host have the label `host`, refusals the label `reason`.

## The streamer

`ringmark stream --metrics-file FILE` writes these every 10 s. The textfile collector of node_exporter reads files whose names
end in `.prom`.

";

/// The page.
pub(crate) fn page() -> String {
    let streamer = StreamFigures {
        certificate_until: Some(0),
        certificate_renewal: Some(0),
        ..StreamFigures::default()
    };
    let collector = rows(&Figures::default().text());
    format!("{START}{collector}{STREAMER}{}", rows(&streamer.text()))
}

/// The table of the lines `# HELP NAME TEXT` and `# TYPE NAME KIND` in a text.
fn rows(text: &str) -> String {
    let after = |start: &'static str| text.lines().filter_map(move |l| l.strip_prefix(start));
    let kinds = after("# TYPE ").filter_map(|line| line.split_once(' '));
    let rows = after("# HELP ").zip(kinds).filter_map(|(help, (_, kind))| {
        let (name, text) = help.split_once(' ')?;
        Some([code(name), kind.to_owned(), cell(text)])
    });
    table(["figure", "kind", "meaning"], rows)
}
