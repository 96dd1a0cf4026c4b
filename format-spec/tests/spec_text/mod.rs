//! Reads tables out of Markdown and constants out of Rust source, as far as the test needs it.

use std::collections::BTreeMap;

/// The first cells of a table's row, without back quotes where the whole cell is quoted.
pub(crate) type Row = Vec<String>;

/// All tables that follow a line starting with `prefix`, by the name in that line: for
/// ``**`Slot`, 256 bytes**`` it is `Slot, 256 bytes`, for ``**Table `a::B`**`` it is `a::B`.
/// Only those whose name is `wanted`; each row has its first `cells` cells.
pub(crate) fn named_tables(
    text: &str,
    prefix: &str,
    cells: usize,
    wanted: fn(&str) -> bool,
) -> BTreeMap<String, Vec<Row>> {
    let mut found = BTreeMap::new();
    for line in text.lines().filter(|l| l.starts_with(prefix)) {
        let name = line.trim_start_matches("**Table ");
        let name = match name.strip_prefix("**") {
            Some(of_struct) => of_struct.trim_end_matches('*').replace('`', ""),
            None => name.split('`').nth(1).unwrap_or_default().to_owned(),
        };
        if !wanted(&name) {
            continue;
        }
        let before = found.insert(name.clone(), table_after(text, line, cells));
        assert!(before.is_none(), "{name}: two tables of this name");
    }
    found
}

/// Rows of the table after `line`, which must be a whole line of the text.
pub(crate) fn table_after(text: &str, line: &str, cells: usize) -> Vec<Row> {
    let after = text.lines().skip_while(|l| *l != line).skip(1);
    let table = after.skip_while(|l| l.is_empty());
    table
        .take_while(|l| l.starts_with('|'))
        .skip(2)
        .map(|l| row(l, cells))
        .collect()
}

fn row(line: &str, cells: usize) -> Row {
    let all: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    assert!(
        all.len() > cells && all.iter().all(|c| !c.is_empty()),
        "a row with an empty or missing cell: {line}"
    );
    let plain = |cell: &&str| {
        let quoted = cell.strip_prefix('`').and_then(|c| c.strip_suffix('`'));
        // Names of single numbers stay quoted: they are compared as they stand.
        match quoted {
            Some(inside) if cells > 2 => inside.to_owned(),
            _ => (*cell).to_owned(),
        }
    };
    all[..cells].iter().map(plain).collect()
}

/// Public constants in a source file: module (`None`: top level), name, value as written.
/// Constants of `impl` blocks are not public constants of the format.
pub(crate) fn public_constants(source: &str) -> Vec<(Option<String>, String, String)> {
    let mut module = None;
    let mut found = Vec::new();
    for line in source.lines() {
        if let Some(name) = line.strip_prefix("pub mod ") {
            module = name.strip_suffix(" {").map(str::to_owned);
        } else if line == "}" {
            module = None;
        }
        let indent = if module.is_some() { "    " } else { "" };
        let constant = line
            .strip_prefix(indent)
            .and_then(|l| l.strip_prefix("pub const "));
        let constant = constant.filter(|c| !c.starts_with("fn "));
        if let Some((name, rest)) = constant.and_then(|c| c.split_once(": ")) {
            let value = rest.split_once(" = ").map_or("", |(_, v)| v);
            let value = value.trim_end_matches(';').to_owned();
            found.push((module.clone(), name.to_owned(), value));
        }
    }
    found
}
