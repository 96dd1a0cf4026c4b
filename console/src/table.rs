//! Tables of text whose columns fit their content.

use std::borrow::Cow;
use std::io::{self, Write};
use std::iter::repeat_n;

use crate::Style;
use crate::units::counted;
use crate::width::{SHORTEST_NAME, cut, shorten_name, width};

/// Headings of columns that may be cut, the one that is cut first in front.
const CUT: [&str; 10] = [
    "SPANS", "CATEGORY", "TARGET", "MODULE", "SERVICE", "THREAD", "FIELDS", "HOST", "FOR", "NAME",
];
/// Headings of columns that a narrow terminal does without, the one that is missed least in front.
const LEFT_OUT: [&str; 28] = [
    "TRACER",
    "TREND",
    "CATEGORY",
    ">PAYLOAD",
    ">~P50",
    ">P50",
    ">MEAN",
    ">MEAN A",
    ">MEAN B",
    "TARGET",
    "MODULE",
    "FIELDS",
    ">WINDOW",
    ">TID",
    "FIRST SEEN",
    ">~P99",
    ">P99",
    "MODE",
    ">SEGMENTS",
    "FIRST DAY",
    "SEGMENT",
    ">MEMORY",
    "SERVICE",
    ">TOTAL",
    "LAST SEEN",
    ">RINGS",
    ">FILL",
    ">MAX",
];

/// Rows of text under headings. Columns whose heading starts with `>` are right-aligned.
#[derive(Debug)]
pub struct Table {
    headings: Vec<Cow<'static, str>>,
    rows: Vec<Vec<String>>,
    feet: Vec<String>,
    /// Width of the terminal, at which rows end.
    cut_to: Option<usize>,
    /// Columns of each of `headings` at least; empty: as its cells need.
    least: Vec<usize>,
}

impl Table {
    /// A table without rows.
    pub fn new(headings: &[&'static str]) -> Self {
        Self::with(headings.iter().map(|of| Cow::Borrowed(*of)).collect())
    }

    /// The same with headings that are known at run time.
    pub fn of(headings: Vec<String>) -> Self {
        Self::with(headings.into_iter().map(Cow::Owned).collect())
    }

    const fn with(headings: Vec<Cow<'static, str>>) -> Self {
        Self {
            headings,
            rows: Vec::new(),
            feet: Vec::new(),
            cut_to: None,
            least: Vec::new(),
        }
    }

    /// Gives each column a least width, and keeps those that say nothing: what is drawn again and again
    /// stays where it is.
    pub fn steady(&mut self, least: Vec<usize>) {
        self.least = least;
    }

    /// Appends a row: one text per heading, safe for a terminal.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Whether it has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Appends lines that stand below the rows.
    pub fn foot(&mut self, lines: impl IntoIterator<Item = String>) {
        self.feet.extend(lines);
    }

    /// Leaves out the rows after the first ones, and says how many below the table.
    pub fn first(&mut self, rows: usize) {
        let more = self.rows.len().saturating_sub(rows);
        self.rows.truncate(rows);
        if more > 0 {
            let rows = counted(more as u64, "more row");
            self.feet.insert(0, format!("{rows} (-n)"));
        }
    }

    /// Makes the table for a terminal of that many columns; `None`: for none. Columns that say
    /// nothing are left out, and those for which there is no room, which a line below the table
    /// says. Names are cut in their middle.
    pub fn fit(&mut self, columns: Option<usize>) {
        let Some(columns) = columns else { return };
        for place in (0..self.headings.len()).rev() {
            let cells = self.rows.iter().filter_map(|row| row.get(place));
            let mut said = cells.filter(|cell| !["", "-"].contains(&cell.as_str()));
            let is_steady = !self.least.is_empty();
            if !is_steady && !self.rows.is_empty() && said.next().is_none() {
                self.remove(place);
            }
        }
        let mut left_out = Vec::new();
        for heading in LEFT_OUT {
            if self.shortest_width() <= columns {
                break;
            }
            if let Some(place) = self.column(heading) {
                self.remove(place);
                left_out.push(heading.trim_start_matches('>'));
            }
        }
        if !left_out.is_empty() {
            let names = left_out.join(", ");
            self.feet.push(format!(
                "left out on this narrow terminal: {names} (--wide)"
            ));
        }
        self.shorten(columns);
        self.cut_to = Some(columns);
    }

    /// The same, with all columns: texts are cut in their middle, the widest first.
    pub fn fit_texts(&mut self, columns: Option<usize>) {
        let Some(columns) = columns else { return };
        self.cut_to = Some(columns);
        let widths = self.widths();
        let texts = (0..widths.len()).filter(|at| !self.headings[*at].starts_with('>'));
        let mut texts: Vec<_> = texts.collect();
        texts.sort_by_key(|at| usize::MAX - widths[*at]);
        for place in texts {
            let too_much = self.row_width().saturating_sub(columns);
            let room = widths[place].saturating_sub(too_much).max(SHORTEST_NAME);
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
                shorten_name(cell, room);
            }
        }
    }

    /// Cuts names so that rows have at most `columns`, or names their shortest form.
    fn shorten(&mut self, columns: usize) {
        for place in CUT.map(|name| self.column(name)).into_iter().flatten() {
            let others = self.row_width() - self.widths()[place];
            let room = columns.saturating_sub(others).max(SHORTEST_NAME);
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(place)) {
                shorten_name(cell, room);
            }
        }
    }

    fn remove(&mut self, place: usize) {
        self.headings.remove(place);
        if place < self.least.len() {
            self.least.remove(place);
        }
        for row in self.rows.iter_mut().filter(|row| row.len() > place) {
            row.remove(place);
        }
    }

    /// Columns of the widest row once all names are cut as short as may be.
    fn shortest_width(&self) -> usize {
        let widths = self.widths();
        let too_long = |name: &str| {
            let place = self.column(name)?;
            Some(widths[place].saturating_sub(SHORTEST_NAME))
        };
        self.row_width() - CUT.into_iter().filter_map(too_long).sum::<usize>()
    }

    /// Columns of the widest row.
    fn row_width(&self) -> usize {
        let widths = self.widths();
        widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
    }

    /// The place of the column with this heading.
    pub fn column(&self, heading: &str) -> Option<usize> {
        self.headings.iter().position(|known| *known == heading)
    }

    /// Writes headings and rows.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&self, out: &mut impl Write, style: Style) -> io::Result<()> {
        let widths = self.widths();
        writeln!(out, "{}", self.head(style, &widths))?;
        let mut line = String::new();
        for row in &self.rows {
            self.fill(&mut line, row.iter().map(String::as_str), &widths);
            writeln!(out, "{line}")?;
        }
        self.feet
            .iter()
            .try_for_each(|line| writeln!(out, "{line}"))
    }

    /// Headings and rows as lines, without those below the table.
    pub fn lines(&self, style: Style) -> Vec<String> {
        let widths = self.widths();
        let mut lines = vec![self.head(style, &widths)];
        let rows = self.rows.iter();
        lines.extend(rows.map(|row| self.line(row.iter().map(String::as_str), &widths)));
        lines
    }

    fn head(&self, style: Style, widths: &[usize]) -> String {
        let names = self.headings.iter().map(|h| h.trim_start_matches('>'));
        let headings = self.line(names, widths);
        format!("{}{headings}{}", style.heading(), style.plain())
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let heading = self.headings[column].trim_start_matches('>').len();
            let least = self.least.get(column).copied().unwrap_or(0);
            cells
                .map(|c| width(c))
                .max()
                .unwrap_or(0)
                .max(heading)
                .max(least)
        };
        (0..self.headings.len()).map(widest).collect()
    }

    fn line<'a>(&self, cells: impl Iterator<Item = &'a str>, widths: &[usize]) -> String {
        let mut line = String::new();
        self.fill(&mut line, cells, widths);
        line
    }

    /// Replaces what a line holds by a row. A table may have hundreds of thousands.
    fn fill<'a>(&self, line: &mut String, cells: impl Iterator<Item = &'a str>, widths: &[usize]) {
        line.clear();
        for ((cell, room), heading) in cells.zip(widths).zip(&self.headings) {
            let padding = repeat_n(' ', room.saturating_sub(width(cell)));
            if !line.is_empty() {
                line.push_str("  ");
            }
            if heading.starts_with('>') {
                line.extend(padding);
                line.push_str(cell);
            } else {
                line.push_str(cell);
                line.extend(padding);
            }
        }
        line.truncate(line.trim_end().len());
        if let Some(columns) = self.cut_to {
            cut(line, columns);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_cut_where_the_terminal_ends() {
        let mut table = Table::new(&[">COUNT", "NAME", "MODULE"]);
        let long = format!("begin{}end", "ä".repeat(200));
        table.row(vec!["1".into(), long.clone(), "server".into()]);
        table.row(vec!["12".into(), "short".into(), "server".into()]);
        table.foot(["a line".to_owned()]);
        let written = |table: &Table| {
            let mut out = Vec::new();
            table.write(&mut out, Style::none()).unwrap();
            String::from_utf8(out).unwrap()
        };
        table.fit(None);
        assert!(written(&table).contains(&long));
        table.fit(Some(80));
        let text = written(&table);
        let widths: Vec<_> = text.lines().map(|line| line.chars().count()).collect();
        assert_eq!(widths, [80, 80, 80, 6], "{text}");
        assert!(
            text.contains("  begin") && text.contains("end  server"),
            "{text}"
        );
        assert!(text.contains("…") && text.contains("  short  "), "{text}");
        // A terminal that is too narrow for all columns.
        table.fit(Some(20));
        let text = written(&table);
        assert!(text.lines().next() == Some("COUNT  NAME"), "{text}");
        assert!(
            text.contains("left out on this narrow terminal: MODULE"),
            "{text}"
        );
        let rows = text.lines().take(3);
        assert!(rows.map(width).max() <= Some(20), "{text}");
    }

    #[test]
    fn columns_that_say_nothing_are_for_files() {
        let mut table = Table::new(&["ON", "NAME", "CATEGORY"]);
        table.row(vec!["-".into(), "a".into(), String::new()]);
        let mut all = Table::of(table.headings.iter().map(ToString::to_string).collect());
        all.row(vec!["-".into(), "a".repeat(90), String::new()]);
        all.fit_texts(Some(40));
        assert_eq!(all.headings, ["ON", "NAME", "CATEGORY"]);
        assert!(all.row_width() <= 40);
        table.fit(Some(80));
        assert_eq!(table.headings, ["NAME"]);
    }
}
