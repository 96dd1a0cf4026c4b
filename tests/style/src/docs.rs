//! Documents that must exist, and links that must lead somewhere.

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
}
