//! Dependency edges: the table in ARCHITECTURE.md against the Cargo files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// Package → packages it depends on.
pub type Edges = BTreeMap<String, BTreeSet<String>>;

/// What Cargo says about one workspace package.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Package {
    /// Directory, from the root of the checkout.
    pub dir: String,
    /// Packages of this workspace that it depends on outside tests.
    pub ours: BTreeSet<String>,
    /// Other packages that it always depends on outside tests: not optional, also where only some
    /// targets need it; models (`cfg(loom)`) are left out.
    pub foreign: BTreeSet<String>,
}

/// Reads the output of `cargo metadata --no-deps --format-version 1`.
///
/// # Errors
/// A description of what is not as Cargo writes it.
pub fn packages(metadata: &str) -> Result<BTreeMap<String, Package>, String> {
    let value: Value = serde_json::from_str(metadata).map_err(|error| error.to_string())?;
    let root = text(&value, "workspace_root")?;
    let list = value["packages"].as_array().ok_or("no `packages`")?;
    list.iter()
        .map(|package| read_package(package, root))
        .collect()
}

fn read_package(value: &Value, root: &str) -> Result<(String, Package), String> {
    let manifest = text(value, "manifest_path")?.trim_start_matches(root);
    let dir = manifest.trim_end_matches("Cargo.toml").trim_matches('/');
    let mut package = Package {
        dir: dir.into(),
        ..Package::default()
    };
    for dependency in value["dependencies"]
        .as_array()
        .ok_or("no `dependencies`")?
    {
        let name = text(dependency, "name")?.to_owned();
        let is_dev = dependency["kind"] == "dev";
        if dependency["path"].is_string() && !is_dev {
            package.ours.insert(name);
        } else if !is_dev && dependency["optional"] == false && dependency["target"] != "cfg(loom)"
        {
            package.foreign.insert(name);
        }
    }
    Ok((text(value, "name")?.to_owned(), package))
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("no `{key}`"))
}

/// The table after the line `<!-- edges -->`: first cell a package, second the packages that it
/// may depend on, each in backticks.
///
/// # Errors
/// When there is no such table.
pub fn table(markdown: &str) -> Result<Edges, String> {
    let (_, behind) = markdown
        .split_once("<!-- edges -->")
        .ok_or("no line `<!-- edges -->`")?;
    let rows = behind.lines().skip_while(|line| !line.starts_with('|'));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let edges: Edges = rows.filter_map(row).collect();
    if edges.is_empty() {
        Err("the table of edges is empty".into())
    } else {
        Ok(edges)
    }
}

fn row(line: &str) -> Option<(String, BTreeSet<String>)> {
    let mut cells = line.trim_matches('|').split('|');
    let name = ticked(cells.next()?).next()?.to_owned();
    Some((name, ticked(cells.next()?).map(str::to_owned).collect()))
}

fn ticked(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Every difference, in both directions.
#[must_use]
pub fn compare(allowed: &Edges, actual: &Edges) -> Vec<String> {
    let none = BTreeSet::new();
    let names: BTreeSet<_> = allowed.keys().chain(actual.keys()).collect();
    let mut findings = Vec::new();
    for name in names {
        if !allowed.contains_key(name) {
            findings.push(format!(
                "{name}: a workspace package without a row in ARCHITECTURE.md's table of edges"
            ));
        }
        if !actual.contains_key(name) {
            findings.push(format!(
                "{name}: has a row in ARCHITECTURE.md's table of edges, is no workspace package"
            ));
        }
        let (may, does) = (
            allowed.get(name).unwrap_or(&none),
            actual.get(name).unwrap_or(&none),
        );
        findings.extend(
            does.difference(may)
                .map(|to| format!("{name} depends on {to}, which ARCHITECTURE.md does not allow")),
        );
        findings.extend(may.difference(does).map(|to| {
            format!(
                "ARCHITECTURE.md lets {name} depend on {to}, which it does not: take the edge out"
            )
        }));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "text\n<!-- edges -->\n\n| package | may depend on |\n| --- | --- |\n| `a` | `b`, `c` |\n| `b` | |\n\n| `no` | `row` |\n";

    fn edges(list: &[(&str, &[&str])]) -> Edges {
        list.iter()
            .map(|(from, to)| ((*from).into(), to.iter().map(|s| (*s).into()).collect()))
            .collect()
    }

    #[test]
    fn the_table_is_read() {
        assert_eq!(
            table(TABLE).unwrap(),
            edges(&[("a", &["b", "c"]), ("b", &[])])
        );
        assert!(table("| `a` | `b` |").is_err());
    }

    #[test]
    fn both_directions_are_found() {
        let allowed = table(TABLE).unwrap();
        assert!(compare(&allowed, &allowed).is_empty());
        let actual = edges(&[("a", &["b", "d"]), ("e", &[])]);
        let found = compare(&allowed, &actual);
        for part in [
            "a depends on d",
            "depend on c",
            "e: a workspace",
            "b: has a row",
        ] {
            assert!(
                found.iter().any(|line| line.contains(part)),
                "{part} in {found:?}"
            );
        }
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn metadata_is_read() {
        let metadata = r#"{"workspace_root":"/w","packages":[{"name":"p","manifest_path":"/w/x/Cargo.toml","dependencies":[
            {"name":"libc","kind":null,"optional":false,"target":null},
            {"name":"rustix","kind":null,"optional":false,"target":"cfg(unix)"},
            {"name":"tracing","kind":null,"optional":true,"target":null},
            {"name":"loom","kind":null,"optional":false,"target":"cfg(loom)"},
            {"name":"proptest","kind":"dev","optional":false,"target":null},
            {"name":"q","kind":null,"optional":false,"target":null,"path":"/w/q"},
            {"name":"r","kind":"dev","optional":false,"target":null,"path":"/w/r"}]}]}"#;
        let found = packages(metadata).unwrap();
        let set = |name: &str| BTreeSet::from([name.to_owned()]);
        let expected = Package {
            dir: "x".into(),
            ours: set("q"),
            foreign: &set("libc") | &set("rustix"),
        };
        assert_eq!(found["p"], expected);
        assert!(packages("{}").is_err());
    }
}
