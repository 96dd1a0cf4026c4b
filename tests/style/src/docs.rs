//! Documents that must exist, links that must lead somewhere, promises that must name their test.

use std::path::Path;

use super::sources::Source;

/// Documents of `names` that are missing or empty among `sources`.
#[must_use]
pub fn missing(sources: &[Source], names: &[&str]) -> Vec<String> {
    let is_there = |name: &str| {
        sources
            .iter()
            .any(|source| source.path == name && !source.text.trim().is_empty())
    };
    let lacking = names.iter().filter(|name| !is_there(name));
    lacking
        .map(|name| format!("{name}: missing or empty"))
        .collect()
}

/// Relative links of a Markdown file that lead nowhere.
#[must_use]
pub fn dead_links(root: &Path, source: &Source) -> Vec<String> {
    let dir = root.join(&source.path);
    let dir = dir.parent().unwrap_or(root);
    let links = source
        .text
        .split("](")
        .skip(1)
        .filter_map(|part| part.split(')').next());
    let local = links.filter(|link| !link.contains("://") && !link.starts_with('#'));
    let paths = local.map(|link| link.split('#').next().unwrap_or_default());
    let dead = paths.filter(|path| !dir.join(path).exists());
    dead.map(|path| format!("{}: link to {path}, which is not there", source.path))
        .collect()
}

/// Files of the ways through the code (tables with the head `| | file |`) that are not there, and
/// ways of more than ten files.
#[must_use]
pub fn ways(root: &Path, source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let tables = source.text.split("| | file |").skip(1);
    for (number, table) in tables.enumerate() {
        let rows = table
            .lines()
            .skip(2)
            .take_while(|line| line.starts_with('|'));
        let files: Vec<_> = rows.filter_map(|row| row.split('`').nth(1)).collect();
        if !(1..=10).contains(&files.len()) {
            let found = files.len();
            findings.push(format!(
                "{}: way {}: {found} files, expected 1 to 10",
                source.path,
                number + 1
            ));
        }
        let dead = files.iter().filter(|path| !root.join(path).is_file());
        findings.extend(dead.map(|path| format!("{}: no file {path}", source.path)));
    }
    findings
}

/// Rows of PROMISES.md whose third cell is neither `pending` nor names existing files in
/// backticks, or whose figure is there without a test, or the other way round.
#[must_use]
pub fn promises(root: &Path, source: &Source) -> Vec<String> {
    let rows = source
        .text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| #"));
    let rows = rows.filter(|line| !line.starts_with("| ---"));
    let findings = rows.filter_map(|row| promise(root, row).err());
    findings
        .map(|reason| format!("{}: {reason}", source.path))
        .collect()
}

fn promise(root: &Path, row: &str) -> Result<(), String> {
    let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
    let [id, _promise, test, figure, date] = cells[..] else {
        return Err(format!("{} cells, expected 5: {row}", cells.len()));
    };
    if test == "pending" {
        let is_open = figure == "pending" && date.is_empty();
        return if is_open {
            Ok(())
        } else {
            Err(format!("{id}: a figure or date without a test"))
        };
    }
    let mut files = test.split('`').skip(1).step_by(2).peekable();
    if files.peek().is_none() {
        return Err(format!("{id}: neither `pending` nor a test in backticks"));
    }
    match files.find(|file| !root.join(file.split("::").next().unwrap_or(file)).exists()) {
        Some(file) => Err(format!("{id}: {file} is not there")),
        None if figure.is_empty() || date.is_empty() => {
            Err(format!("{id}: figure and date are needed"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace_root;

    #[test]
    fn a_missing_document_is_found() {
        let sources = [
            Source::new("README.md", "text"),
            Source::new("DESIGN.md", " \n"),
        ];
        assert_eq!(
            missing(&sources, &["README.md", "DESIGN.md", "SPEC.md"]).len(),
            2
        );
    }

    #[test]
    fn a_dead_link_is_found() {
        let text = "[a](Cargo.toml) [b](https://example.org) [c](#x) [d](no/such.md#part)";
        let found = dead_links(&workspace_root(), &Source::new("README.md", text));
        assert_eq!(found, ["README.md: link to no/such.md, which is not there"]);
    }

    #[test]
    fn a_way_through_a_file_that_is_gone_is_found() {
        let row = "| 1 | `Cargo.toml` | packages |\n";
        let text = |rows: &str| format!("| | file | what |\n| ---: | --- | --- |\n{rows}\ntext");
        let check = |rows: &str| ways(&workspace_root(), &Source::new("A.md", &text(rows)));
        assert!(check(row).is_empty());
        assert_eq!(
            check("| 1 | `src/gone.rs` | gone |\n"),
            ["A.md: no file src/gone.rs"]
        );
        assert_eq!(
            check(&row.repeat(11)),
            ["A.md: way 1: 11 files, expected 1 to 10"]
        );
    }

    #[test]
    fn a_promise_names_an_existing_test_or_is_pending() {
        let head = "| # | promise | test | figure | date |\n| --- | --- | --- | --- | --- |\n";
        let check = |row: &str| {
            promises(
                &workspace_root(),
                &Source::new("PROMISES.md", &format!("{head}{row}\n")),
            )
        };
        assert!(check("| 1 | p | pending | pending | |").is_empty());
        assert!(check("| 1 | p | `Cargo.toml::words` | 0 | 2025-01-02 |").is_empty());
        for bad in [
            "| 1 | p | pending | 12 ns | |",
            "| 1 | p | a test | 12 ns | 2025-01-02 |",
            "| 1 | p | `tests/no-such.rs` | 12 ns | 2025-01-02 |",
            "| 1 | p | `Cargo.toml` | 12 ns | |",
            "| 1 | p | pending |",
        ] {
            assert_eq!(check(bad).len(), 1, "{bad}");
        }
    }
}
