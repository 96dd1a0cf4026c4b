//! Documents that must exist, and links that must lead somewhere.

use std::collections::BTreeSet;
use std::fs;
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

/// Relative links of a Markdown file that lead to no file, or to no heading of one.
#[must_use]
pub fn dead_links(root: &Path, source: &Source) -> Vec<String> {
    let dir = root.join(&source.path);
    let dir = dir.parent().unwrap_or(root);
    let links = source
        .text
        .split("](")
        .skip(1)
        .filter_map(|part| part.split(')').next());
    let local = links.filter(|link| !link.contains("://") && !is_made(source, link));
    let dead = local.filter_map(|link| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        dead(dir, &source.text, path, anchor)
            .then(|| format!("{}: link to {link}, which is not there", source.path))
    });
    dead.collect()
}

/// Whether a link between pages of the guide leads to one that `docs/build` makes from the code.
fn is_made(source: &Source, link: &str) -> bool {
    const MADE: [&str; 4] = ["settings", "commands", "limits", "figures"];
    let name = link
        .strip_prefix("reference-")
        .and_then(|name| name.strip_suffix(".md"));
    source.path.starts_with("docs/src/") && name.is_some_and(|name| MADE.contains(&name))
}

/// Whether a link from a text in `dir` leads nowhere.
fn dead(dir: &Path, text: &str, path: &str, anchor: &str) -> bool {
    let target = dir.join(path);
    match anchor {
        "" => !target.exists(),
        _ if path.is_empty() => !anchors(text).contains(anchor),
        _ => !fs::read_to_string(target).is_ok_and(|text| anchors(&text).contains(anchor)),
    }
}

/// What links can name in a Markdown text: its headings, as GitHub and mdBook make names of them, and `id="…"`.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let ids = line.split(" id=\"").skip(1);
        found.extend(ids.filter_map(|id| Some(id.split('"').next()?.to_owned())));
        if line.starts_with('#') && !in_code {
            let name = anchor(line.trim_start_matches('#').trim());
            let again = (1..).map(|number| format!("{name}-{number}"));
            let mut names = std::iter::once(name.clone()).chain(again);
            found.extend(names.find(|name| !found.contains(name)));
        }
    }
    found
}

fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || " -_".contains(*c);
    let name = heading.chars().filter(kept).collect::<String>();
    name.to_lowercase().replace(' ', "-")
}

/// Pages next to a book's summary that it does not list, or not once.
#[must_use]
pub fn unlisted(sources: &[Source], summary: &Source) -> Vec<String> {
    let (dir, _) = summary.path.rsplit_once('/').unwrap_or_default();
    let pages = sources.iter().filter_map(|source| {
        let name = source.path.strip_prefix(dir)?.strip_prefix('/')?;
        (name.ends_with(".md") && name != "SUMMARY.md").then_some(name)
    });
    let counts = pages.map(|name| {
        let listed = summary.text.matches(&format!("]({name})")).count();
        (name, listed)
    });
    let wrong = counts.filter(|(_, listed)| *listed != 1);
    wrong
        .map(|(name, listed)| format!("{}: lists {name} {listed} times", summary.path))
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
        let text = "# The x, `y`\n[a](Cargo.toml) [b](https://example.org) [c](#the-x-y) [d](no/such.md#part) [e](#z)";
        let found = dead_links(&workspace_root(), &Source::new("README.md", text));
        assert_eq!(
            found,
            [
                "README.md: link to no/such.md#part, which is not there",
                "README.md: link to #z, which is not there"
            ]
        );
        let text = "[a](../README.md#ringmark) [b](../README.md#no-such-part)";
        let found = dead_links(&workspace_root(), &Source::new("docs/a.md", text));
        assert_eq!(
            found,
            ["docs/a.md: link to ../README.md#no-such-part, which is not there"]
        );
    }

    #[test]
    fn headings_are_named_as_browsers_find_them() {
        let text = "# A b: `c-d`\n## A b c-d\n```sh\n# none\n```\n<a id=\"e\"></a>";
        let names: Vec<_> = anchors(text).into_iter().collect();
        assert_eq!(names, ["a-b-c-d", "a-b-c-d-1", "e"]);
    }

    #[test]
    fn a_page_that_no_reader_finds_is_found() {
        let summary = Source::new(
            "docs/src/SUMMARY.md",
            "- [A](a.md)\n- [B](b.md)\n- [B](b.md)",
        );
        let pages = ["a", "b", "c"].map(|name| Source::new(&format!("docs/src/{name}.md"), "text"));
        assert_eq!(
            unlisted(&pages, &summary),
            [
                "docs/src/SUMMARY.md: lists b.md 2 times",
                "docs/src/SUMMARY.md: lists c.md 0 times"
            ]
        );
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
