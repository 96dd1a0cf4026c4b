//! The parts of Markdown that the pages have.

/// A table of Markdown.
pub(crate) fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let rows: String = rows.into_iter().map(line).collect();
    let under = ["---"; N].map(str::to_owned);
    line(head.map(str::to_owned)) + &line(under) + &rows
}

/// A text in the type of code.
pub(crate) fn code(text: &str) -> String {
    format!("`{text}`")
}

/// A text as the cell of a table: one line, without what would end the cell.
pub(crate) fn cell(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}
