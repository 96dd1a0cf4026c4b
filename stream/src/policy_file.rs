//! A file with what holds for each service, as an operator writes it: TOML, before it is signed, and as the
//! own bounds of a host.

use std::fs;
use std::path::Path;

use ringmark_format::policy::{ANY_SERVICE, ServicePolicy};
use toml::{Table, Value};

use crate::config_file::mistake;
use ringmark_console::Failure;
use ringmark_console::units::parse_size;

/// The sections of a file.
///
/// # Errors
/// It cannot be read, or something in it is not understood.
pub(crate) fn read(path: &Path) -> Result<Vec<ServicePolicy>, Failure> {
    let at = |text: String| Failure::usage(format!("{}: {text}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
    parse(&text).map_err(at)
}

/// The sections of the file with a host's own bounds: these have budgets only.
///
/// # Errors
/// As [`read`], or a section has events.
pub(crate) fn read_bounds(path: &Path) -> Result<Vec<ServicePolicy>, Failure> {
    let sections = read(path)?;
    let with_rules = sections.iter().find(|section| !section.rules.is_empty());
    match with_rules {
        None => Ok(sections),
        Some(section) => Err(Failure::usage(format!(
            "{}: service {:?}: found events, expected budget and burst; RINGMARK_FILTER of the program says what is on",
            path.display(),
            section.service
        ))),
    }
}

fn parse(text: &str) -> Result<Vec<ServicePolicy>, String> {
    let table: Table = text.parse().map_err(|error| mistake(text, &error))?;
    let mut sections = Vec::new();
    for (key, value) in &table {
        match (key.as_str(), value) {
            ("default", Value::Table(of)) => sections.push(section(ANY_SERVICE, of)?),
            ("service", Value::Table(all)) => {
                for (name, value) in all {
                    let of = value.as_table();
                    let of = of.ok_or_else(|| format!("service.{name}: expected a section"))?;
                    sections.push(section(name, of)?);
                }
            }
            _ => {
                return Err(format!(
                    "found {key:?}, expected [default] or [service.NAME]"
                ));
            }
        }
    }
    Ok(sections)
}

fn section(name: &str, of: &Table) -> Result<ServicePolicy, String> {
    if name.is_empty() || name.contains('\n') {
        return Err(format!("service {name:?}: expected the name of a service"));
    }
    let mut section = ServicePolicy {
        service: name.to_owned(),
        ..ServicePolicy::default()
    };
    for (key, value) in of {
        let at = |why: String| format!("service {name:?}: {key}: {why}");
        match key.as_str() {
            "events" => {
                for rule in texts(value).map_err(at)? {
                    section.add_rule(rule).map_err(at)?;
                }
            }
            "budget" => section.budget.bytes_per_hour = Some(bytes(value).map_err(at)?),
            "burst" => section.budget.burst = Some(bytes(value).map_err(at)?),
            _ => return Err(at("expected events, budget or burst".to_owned())),
        }
    }
    match section.budget.burst {
        Some(_) if section.budget.bytes_per_hour.is_none() => {
            Err(format!("service {name:?}: burst: expected a budget, too"))
        }
        _ => Ok(section),
    }
}

fn texts(value: &Value) -> Result<Vec<&str>, String> {
    let wrong = || "expected a list of texts such as \"disable *\"".to_owned();
    let all = value.as_array().ok_or_else(wrong)?;
    all.iter()
        .map(|one| one.as_str().ok_or_else(wrong))
        .collect()
}

/// A size, or 0: then nothing is sent.
fn bytes(value: &Value) -> Result<u64, String> {
    match value {
        Value::Integer(number) => u64::try_from(*number)
            .map_err(|_| format!("found {number}, expected a size such as \"20M\", or 0")),
        Value::String(text) if text == "0" => Ok(0),
        Value::String(text) => parse_size(text),
        _ => Err("expected a size such as \"20M\", or 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read() {
        let text = "[default]\nbudget = '200M'\n[service.shop]\nevents = ['disable *', 'enable * level=warn']\n\
                    budget = 0\nburst = '1K'\n[service.'a b']\nbudget = 7\n";
        let mut sections = parse(text).unwrap();
        sections.sort_by(|a, b| a.service.cmp(&b.service));
        let names: Vec<_> = sections.iter().map(|one| one.service.as_str()).collect();
        assert_eq!(names, ["*", "a b", "shop"]);
        assert_eq!(sections[0].budget.bytes_per_hour, Some(200 << 20));
        assert_eq!(sections[2].rules, ["disable *", "enable * level=warn"]);
        let budget = sections[2].budget;
        assert_eq!((budget.bytes_per_hour, budget.burst), (Some(0), Some(1024)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, expected) in [
            ("x = 1", "found \"x\", expected [default] or [service.NAME]"),
            ("[service]\nshop = 1", "service.shop: expected a section"),
            (
                "[service.shop]\nlevel = 'info'",
                "level: expected events, budget or burst",
            ),
            ("[service.shop]\nevents = 'off'", "expected a list of texts"),
            (
                "[service.shop]\nevents = ['filter info']",
                "expected 'enable' or 'disable'",
            ),
            ("[service.shop]\nbudget = -1", "found -1"),
            ("[service.shop]\nbudget = 'much'", "found \"much\""),
            ("[service.shop]\nburst = 1", "burst: expected a budget"),
            ("[service.shop", "line 1, column "),
        ] {
            let told = parse(text).unwrap_err();
            assert!(told.contains(expected), "{text}: {told}");
        }
    }
}
