//! Every memory ordering carries a label, every label stands in the table of `ring/src/lib.rs`
//! with its partner and with what breaks otherwise, and none stands there idle.
//!
//! A label is a letter or more and a number in brackets, `[W1]`. A site's label is the first one
//! in a comment on the statement's own lines or directly above it; further ones name partners.

use std::collections::{BTreeMap, BTreeSet};

use super::scan::{Scanned, has_word, line_of, words};
use super::sources::Source;

/// Label → labels of its partners.
pub type Table = BTreeMap<String, BTreeSet<String>>;

const ORDERINGS: [&str; 3] = ["Acquire", "Release", "AcqRel"];
const HINT: &str = "label it `// [W1] pairs with [R1]` and add the row to ring/src/lib.rs";

/// The table in a crate's documentation: `//! | [W1] | where | [R1] | what breaks otherwise |`,
/// the labels in backticks or not (rustdoc takes bare ones for links).
pub fn table(source: &Source, findings: &mut Vec<String>) -> Table {
    let rows = source
        .text
        .lines()
        .filter_map(|line| line.strip_prefix("//! |"));
    let is_row = |row: &&str| row.trim_start_matches([' ', '`']).starts_with('[');
    let mut table = Table::new();
    for row in rows.filter(is_row) {
        let cells: Vec<_> = row
            .trim_end_matches('|')
            .split('|')
            .map(str::trim)
            .collect();
        let [label, place, partners, breaks] = cells[..] else {
            findings.push(format!("{}: not four cells: {row}", source.path));
            continue;
        };
        let partners: BTreeSet<_> = labels(partners).collect();
        if partners.is_empty() || place.is_empty() || breaks.is_empty() {
            findings.push(format!(
                "{}: {label}: place, partner and consequence are needed",
                source.path
            ));
        }
        let label = label.trim_matches(['[', ']', '`']).to_owned();
        if table.insert(label.clone(), partners).is_some() {
            findings.push(format!("{}: [{label}] has two rows", source.path));
        }
    }
    check_partners(&table, &source.path, findings);
    table
}

fn check_partners(table: &Table, path: &str, findings: &mut Vec<String>) {
    for (label, partners) in table {
        for partner in partners {
            let back = table
                .get(partner)
                .is_some_and(|others| others.contains(label));
            if !back {
                findings.push(format!(
                    "{path}: [{label}] names [{partner}], whose row does not name it back"
                ));
            }
        }
    }
}

/// Orderings without a label, labels without a row or with another partner than their row says,
/// and rows without a site.
#[must_use]
pub fn check(table: &Table, sources: &[&Source]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for source in sources {
        let scanned = Scanned::new(&source.text);
        for line in sites(&scanned.product) {
            let place = format!("{}:{line}", source.path);
            match check_site(table, &comments_at(&scanned, line)) {
                Ok(label) => used.insert(label),
                Err(reason) => {
                    findings.push(format!("{place}: {reason}; {HINT}"));
                    false
                }
            };
        }
    }
    let idle = table.keys().filter(|label| !used.contains(*label));
    findings
        .extend(idle.map(|label| format!("[{label}] stands in the table, no ordering carries it")));
    findings
}

/// Labels that no model shows to be needed, and labels of models that the table does not know. A
/// label is shown to be needed by `caught("W1", …)`, or, where another one does the same, by
/// `holds_without("W4", …)` and `caught("W1+W4", …)`.
#[must_use]
pub fn check_models(table: &Table, models: &[&Source]) -> Vec<String> {
    let (mut alone, mut together) = (BTreeSet::new(), BTreeSet::new());
    let mut spare = BTreeSet::new();
    for source in models {
        let code = source.text.split_whitespace().collect::<String>();
        for label in first_arguments(&code, "caught(\"") {
            let kind = match label.contains('+') {
                false => &mut alone,
                true => &mut together,
            };
            kind.extend(label.split('+').map(str::to_owned));
        }
        let without = first_arguments(&code, "holds_without(\"");
        spare = &spare | &without.map(str::to_owned).collect();
    }
    let is_needed = |l: &String| alone.contains(l) || (together.contains(l) && spare.contains(l));
    let missing = table.keys().filter(|&label| !is_needed(label));
    let mut findings: Vec<_> = missing
        .map(|label| format!("[{label}]: no model in ring/tests/ catches that it is weakened"))
        .collect();
    let named: BTreeSet<_> = [&alone, &together, &spare].into_iter().flatten().collect();
    let unknown = named
        .into_iter()
        .filter(|label| !table.contains_key(*label));
    findings.extend(unknown.map(|label| format!("[{label}] is weakened by a model, has no row")));
    findings
}

fn first_arguments<'c>(code: &'c str, call: &'c str) -> impl Iterator<Item = &'c str> {
    let behind = code.split(call).skip(1);
    behind.filter_map(|rest| Some(rest.split_once('"')?.0))
}

fn check_site(table: &Table, comments: &str) -> Result<String, String> {
    let mut named = labels(comments);
    let own = named.next().ok_or("an ordering without a label")?;
    let row = table.get(&own).ok_or(format!("[{own}] has no row"))?;
    match named.find(|partner| !row.contains(partner)) {
        Some(other) => Err(format!("[{own}] does not pair with [{other}] in the table")),
        None => Ok(own),
    }
}

/// Lines, from 1, with an ordering or a fence in them, outside `use`.
fn sites(code: &str) -> BTreeSet<usize> {
    let fences = words(code, "fence").filter(|&at| code[at..].starts_with("fence("));
    let orderings = ORDERINGS.iter().flat_map(|word| words(code, word));
    let lines = fences.chain(orderings).filter(|&at| !in_use(code, at));
    lines.map(|at| line_of(code, at)).collect()
}

fn in_use(code: &str, at: usize) -> bool {
    let statement = code[..at].rsplit(';').next().unwrap_or_default();
    let last_line = statement.rsplit("}\n").next().unwrap_or_default();
    let start = last_line.trim_start().trim_start_matches("pub ");
    start.starts_with("use ") && has_word(last_line, "use")
}

/// Comments on the lines of the statement that `line` belongs to, then those directly above it.
fn comments_at(scanned: &Scanned, line: usize) -> String {
    let code: Vec<_> = scanned.code.lines().map(str::trim).collect();
    let comments: Vec<_> = scanned.comments.lines().map(str::trim).collect();
    let mut found = vec![comments[line - 1]];
    let mut above = line - 1;
    while above > 0 && !code[above - 1].is_empty() && !code[above - 1].ends_with([';', '{', '}']) {
        above -= 1;
        found.push(comments[above]);
    }
    let block = (0..above)
        .rev()
        .take_while(|&at| code[at].is_empty() && !comments[at].is_empty());
    let block: Vec<_> = block.map(|at| comments[at]).collect();
    found.extend(block.into_iter().rev());
    found.join("\n")
}

fn labels(text: &str) -> impl Iterator<Item = String> + '_ {
    let inside = text
        .split('[')
        .skip(1)
        .filter_map(|part| part.split_once(']'));
    inside
        .map(|(label, _)| label)
        .filter(|label| is_label(label))
        .map(str::to_owned)
}

fn is_label(text: &str) -> bool {
    let digits = text.trim_start_matches(|c: char| c.is_ascii_uppercase());
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.len() < text.len() && is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "//! | label | where | pairs with | otherwise |\n//! | --- |\n//! | [W1] | commit | [R1] | torn |\n//! | [R1] | walk | [W1] | torn |\n";

    fn findings(table_text: &str, code: &str) -> Vec<String> {
        let lib = Source::new("ring/src/lib.rs", table_text);
        let mut found = Vec::new();
        let table = table(&lib, &mut found);
        found.extend(check(&table, &[&Source::new("ring/src/a.rs", code)]));
        found
    }

    const GOOD: &str = "use core::sync::atomic::{Ordering::Acquire, fence};\nfn f() {\n    a.load(Ordering::Acquire); // [R1] pairs with [W1]\n    // [W1] the commit\n    b\n        .store(1, Ordering::Release);\n    compiler_fence(SeqCst);\n}\n";

    #[test]
    fn labelled_sites_are_fine() {
        assert_eq!(findings(TABLE, GOOD), Vec::<String>::new());
    }

    #[test]
    fn the_table_may_use_backticks() {
        let ticked = TABLE
            .replace("| [W1] |", "| `[W1]` |")
            .replace("| [R1] |", "| `[R1]` |");
        assert_eq!(findings(&ticked, GOOD), Vec::<String>::new());
    }

    #[test]
    fn a_site_without_label_is_found() {
        let code = format!("{GOOD}fn g() {{\n    // Why.\n\n    fence(Ordering::Release);\n}}\n");
        let found = findings(TABLE, &code);
        assert!(
            found[0].starts_with("ring/src/a.rs:12: an ordering without"),
            "{found:?}"
        );
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_label_of_the_statement_before_does_not_count() {
        let code = GOOD.replace("    // [W1] the commit\n", "");
        let found = findings(TABLE, &code);
        assert!(
            found.iter().any(|line| line.contains("a.rs:5")),
            "{found:?}"
        );
        assert!(
            found.iter().any(|line| line.starts_with("[W1] stands")),
            "{found:?}"
        );
    }

    #[test]
    fn a_wrong_partner_and_an_unknown_label_are_found() {
        let found = findings(TABLE, &GOOD.replace("pairs with [W1]", "pairs with [R1]"));
        assert!(
            found[0].contains("[R1] does not pair with [R1]"),
            "{found:?}"
        );
        let found = findings(TABLE, &GOOD.replace("// [W1]", "// [W9]"));
        assert!(found[0].contains("[W9] has no row"), "{found:?}");
    }

    fn model_findings(model: &str) -> Vec<String> {
        let table = table(&Source::new("ring/src/lib.rs", TABLE), &mut Vec::new());
        check_models(&table, &[&Source::new("ring/tests/loom_a.rs", model)])
    }

    #[test]
    fn models_that_catch_every_label_are_fine() {
        let both = "caught(\"W1\", a);\ncaught(\n    \"R1\",\n    b,\n);";
        assert_eq!(model_findings(both), Vec::<String>::new());
        let spare = "caught(\"W1\", a); caught(\"W1+R1\", b); holds_without(\"R1\", \"b\", b);";
        assert_eq!(model_findings(spare), Vec::<String>::new());
    }

    #[test]
    fn a_label_that_no_model_catches_is_found() {
        let found = model_findings("caught(\"W1\", a); caught(\"W1+R1\", b);");
        assert!(found[0].starts_with("[R1]: no model"), "{found:?}");
        assert_eq!(found.len(), 1);
    }

    #[test]
    fn a_model_of_an_unknown_label_is_found() {
        let found = model_findings("caught(\"W1\", a); caught(\"R1\", b); caught(\"X1\", c);");
        assert_eq!(found, ["[X1] is weakened by a model, has no row"]);
    }

    #[test]
    fn a_table_must_be_symmetric_and_complete() {
        let found = findings(&TABLE.replace("walk | [W1]", "walk | [R1]"), GOOD);
        assert!(
            found.iter().any(|line| line.contains("name it back")),
            "{found:?}"
        );
        let found = findings(&TABLE.replace("[R1] | torn", "[R1] | "), GOOD);
        assert!(
            found.iter().any(|line| line.contains("consequence")),
            "{found:?}"
        );
    }
}
