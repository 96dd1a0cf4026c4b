//! One rule says where Ringmark traces, though Cargo and rustc each need it spelled out.

use super::scan::closing;
use super::sources::Source;

/// Conditions that name `mark` and are not the same as the first one, and files without any.
#[must_use]
pub fn check(sources: &[&Source], mark: &str) -> Vec<String> {
    let mut findings = Vec::new();
    let mut first = None;
    for source in sources {
        let found = conditions(&source.text, mark);
        if found.is_empty() {
            findings.push(format!("{}: no condition with {mark}", source.path));
        }
        for condition in found {
            let rule = first.get_or_insert_with(|| condition.clone());
            if *rule != condition {
                findings.push(format!("{}: {condition}, expected {rule}", source.path));
            }
        }
    }
    findings
}

/// The conditions `all(…)` that hold `not(mark)`, without white space and last commas.
fn conditions(text: &str, mark: &str) -> Vec<String> {
    let mark = format!("not({mark})");
    let wholes = text.match_indices("all(").map(|(at, start)| {
        let open = at + start.len() - 1;
        text[at..closing(text, open)].replace(char::is_whitespace, "")
    });
    let with_mark = wholes.filter(|whole| whole.contains(&mark));
    with_mark.map(|whole| whole.replace(",)", ")")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: &str = "[target.'cfg(all(target_os = \"linux\", not(off)))'.dependencies]";

    fn found(code: &str) -> usize {
        let sources = [Source::new("Cargo.toml", RULE), Source::new("lib.rs", code)];
        check(&[&sources[0], &sources[1]], "off").len()
    }

    #[test]
    fn a_second_rule_is_found() {
        let same = "#[cfg(all(\n    target_os = \"linux\",\n    not(off),\n))]\nmod a;\n";
        assert_eq!(found(same), 0);
        let inverse = "#[cfg(not(all(target_os = \"linux\", not(off))))]\nmod b;\n";
        assert_eq!(found(&format!("{same}{inverse}")), 0);
        assert_eq!(found(&same.replace("linux", "macos")), 1);
        assert_eq!(found(&format!("{same}#[cfg(all(not(off)))]\nmod b;")), 1);
        assert_eq!(found("#[cfg(all(unix, other))]\nmod a;"), 1, "none");
    }
}
