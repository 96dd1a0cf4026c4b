//! Promises: one line each in PROMISES.md, whose details name tests that exist.

use std::path::Path;

use super::sources::Source;

/// What a row may say of its promise; after `missed` the number of targets.
const VERDICTS: [&str; 3] = ["holds", "missed", "pending"];
/// What each promise says that holds or is missed.
const FACTS: [&str; 2] = ["- **Tests:**", "- **Not tested:**"];
/// Stands for a result that `benches/compare` writes, with each processor.
const WRITTEN: &str = "- **Result:** [the targets](../../PERFORMANCE.md#targets)";
/// The longest claim, in characters.
const CLAIM_MAX: usize = 140;

/// A row of the list.
struct Row<'t> {
    id: &'t str,
    claim: &'t str,
    verdict: &'t str,
    page: &'t str,
    anchor: &'t str,
}

/// What is wrong with the rows of `list`, and with their details among `pages`.
#[must_use]
pub fn check(root: &Path, list: &Source, pages: &[&Source]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut ids = Vec::new();
    for line in rows(&list.text) {
        match row(line) {
            Ok(row) => {
                ids.push((row.page, row.id));
                findings.extend(of_row(root, &row, pages).err());
            }
            Err(reason) => findings.push(reason),
        }
    }
    for page in pages {
        let unlisted = sections(&page.text).filter(|(id, _)| !ids.contains(&(&page.path, id)));
        findings.extend(unlisted.map(|(id, _)| format!("{id}: no row lists it")));
    }
    findings
        .into_iter()
        .map(|reason| format!("{}: {reason}", list.path))
        .collect()
}

/// Rows of tables with the head `| # |`.
fn rows(text: &str) -> impl Iterator<Item = &str> {
    let tables = text.split("| # |").skip(1);
    tables.flat_map(|table| {
        let lines = table.lines().skip(2);
        lines.take_while(|line| line.starts_with('|'))
    })
}

fn row(line: &str) -> Result<Row<'_>, String> {
    let cells: Vec<_> = line.trim_matches('|').split('|').map(str::trim).collect();
    let [id, claim, verdict, link] = cells[..] else {
        return Err(format!("{} cells, expected 4: {line}", cells.len()));
    };
    let target = link
        .split_once("](")
        .and_then(|(_, rest)| rest.split_once(')'));
    let (page, anchor) = target
        .and_then(|(target, _)| target.split_once('#'))
        .ok_or_else(|| format!("{id}: no link to its details"))?;
    let verdict = verdict.trim_start_matches("<!-- verdict -->").trim();
    Ok(Row {
        id,
        claim,
        verdict,
        page,
        anchor,
    })
}

fn of_row(root: &Path, row: &Row<'_>, pages: &[&Source]) -> Result<(), String> {
    let id = row.id;
    if row.claim.is_empty() || row.claim.chars().count() > CLAIM_MAX {
        return Err(format!(
            "{id}: expected a claim of at most {CLAIM_MAX} characters"
        ));
    }
    if !VERDICTS
        .iter()
        .any(|verdict| row.verdict.starts_with(verdict))
    {
        return Err(format!(
            "{id}: `{}`, expected one of {VERDICTS:?}",
            row.verdict
        ));
    }
    if row.anchor != id.to_lowercase() {
        return Err(format!("{id}: its link leads to #{}", row.anchor));
    }
    let page = pages.iter().find(|page| page.path == row.page);
    let page = page.ok_or_else(|| format!("{id}: {} is not there", row.page))?;
    let details = sections(&page.text).find(|(found, _)| *found == id);
    let (_, details) =
        details.ok_or_else(|| format!("{id}: {} has no heading for it", row.page))?;
    match row.verdict {
        "pending" => Ok(()),
        verdict => of_details(root, details, verdict).map_err(|reason| format!("{id}: {reason}")),
    }
}

/// Headings of the second level, each with its text.
fn sections(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let sections = text.split("\n## ").skip(1);
    sections.map(|section| section.split_once('\n').unwrap_or((section, "")))
}

fn of_details(root: &Path, details: &str, verdict: &str) -> Result<(), String> {
    let is_written = details.contains(WRITTEN);
    let facts = FACTS.iter().find(|fact| !details.contains(*fact));
    if let Some(fact) = facts {
        return Err(format!("no `{fact}` in its details"));
    }
    let has_day = |line: &str| line.starts_with("- **Result (20") && line.contains("):**");
    let has_result = details.lines().any(has_day) && details.contains("- **Processor:**");
    if !(is_written || has_result) {
        return Err("expected `- **Result (DATE):**` and `- **Processor:**`".to_owned());
    }
    if !is_written && details.contains("**missed**") != verdict.starts_with("missed") {
        return Err(format!("its row says `{verdict}`, its details otherwise"));
    }
    let tests = details.split(FACTS[0]).nth(1).unwrap_or_default();
    let tests = tests.split("\n- **").next().unwrap_or_default();
    let mut files = tests.split('`').skip(1).step_by(2).peekable();
    if files.peek().is_none() {
        return Err("no test in backticks".to_owned());
    }
    match files.find(|file| !root.join(file).exists()) {
        Some(file) => Err(format!("{file} is not there")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace_root;

    const DETAILS: &str = "# Page\n\n## 1\n\nClaim.\n\n- **Tests:** `Cargo.toml`,\n  `README.md`\n- **Result (2025-01-02):** 0 lost.\n- **Processor:** a Z80.\n- **Not tested:** the rest.\n";

    fn found(row: &str, details: &str) -> Vec<String> {
        let list = format!(
            "# Promises\n\n| a |\n| --- |\n| b |\n\n| # | promise | | details |\n| --- | --- | --- | --- |\n{row}\n\ntext\n"
        );
        let page = Source::new("docs/promises/a.md", details);
        check(
            &workspace_root(),
            &Source::new("PROMISES.md", &list),
            &[&page],
        )
    }

    const ROW: &str = "| 1 | claim | holds | [tests](docs/promises/a.md#1) |";

    #[test]
    fn a_promise_with_its_details_is_fine() {
        assert!(found(ROW, DETAILS).is_empty(), "{:?}", found(ROW, DETAILS));
        let pending = ROW.replace("holds", "pending");
        assert!(found(&pending, "# Page\n\n## 1\n\nClaim.\n").is_empty());
        let written =
            format!("\n## 1\n\n{WRITTEN}\n- **Tests:** `Cargo.toml`\n- **Not tested:** a\n");
        assert!(found(&ROW.replace("holds", "missed: 1 of 2 targets"), &written).is_empty());
    }

    #[test]
    fn a_row_that_says_too_little_is_found() {
        for (from, to) in [
            ("holds", "perhaps"),
            ("#1)", "#2)"),
            ("a.md", "b.md"),
            ("| claim ", "| "),
            ("[tests](docs/promises/a.md#1)", "tests"),
            ("| holds ", ""),
            ("holds", "missed"),
        ] {
            assert!(
                !found(&ROW.replacen(from, to, 1), DETAILS).is_empty(),
                "{to}"
            );
        }
        let long = ROW.replace("claim", &"word ".repeat(40));
        assert_eq!(found(&long, DETAILS).len(), 1);
    }

    #[test]
    fn details_without_test_result_processor_or_limits_are_found() {
        for (from, to) in [
            ("`README.md`", "`no/such.rs`"),
            ("`Cargo.toml`,\n  `README.md`", "none"),
            ("- **Result (2025-01-02):**", "- **Result:**"),
            ("- **Processor:** a Z80.\n", ""),
            ("- **Not tested:** the rest.\n", ""),
            ("0 lost", "**missed**"),
            ("## 1", "## 2"),
        ] {
            assert!(
                !found(ROW, &DETAILS.replacen(from, to, 1)).is_empty(),
                "{to}"
            );
        }
    }
}
