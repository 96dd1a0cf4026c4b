//! No circle of files inside a crate: who reads one file need not read all of them. See
//! [`super::imports`] for what an import is.
//!
//! A group that is listed with its reason counts as one file, so that a further file in its
//! circle is found.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::imports::Arrows;

/// Files that may import each other: the files, by path, and the reason.
pub type Group<'g> = (&'g [&'g str], &'g str);

/// Circles among `arrows` that no group allows, each by its shortest way round, and groups of
/// this crate that are no circle any more.
#[must_use]
pub fn check(arrows: &Arrows, groups: &[Group<'_>]) -> Vec<String> {
    let ours = groups.iter().filter(|(files, _)| {
        let is_ours = |file: &&str| arrows.contains_key(*file);
        files.iter().any(is_ours)
    });
    let ours: Vec<_> = ours.map(|(files, _)| *files).collect();
    let mut findings = Vec::new();
    let idle = ours.iter().filter(|files| !is_tied(arrows, files));
    findings.extend(idle.map(|files| {
        let files = files.join(", ");
        format!("{files}: listed as a circle, is none: take it off the list")
    }));
    let merged = merge(arrows, &ours);
    let mut seen = BTreeSet::new();
    for file in merged.keys() {
        if seen.contains(file) {
            continue;
        }
        if let Some(way) = way_round(&merged, file) {
            findings.push(format!("a circle of files: {} -> {file}", way.join(" -> ")));
            seen.extend(way);
        }
    }
    findings
}

/// Whether each file of a group reaches each other one without leaving the group.
fn is_tied(arrows: &Arrows, group: &[&str]) -> bool {
    let is_inside = |file: &String| group.contains(&file.as_str());
    let inside = arrows.iter().filter(|(from, _)| is_inside(from));
    let inside: Arrows = inside
        .map(|(from, to)| {
            (
                from.clone(),
                to.iter().filter(|to| is_inside(to)).cloned().collect(),
            )
        })
        .collect();
    let ways = group.iter().filter(|file| {
        let reached = reached(&inside, file);
        group.iter().all(|other| reached.contains_key(*other))
    });
    ways.count() == group.len()
}

/// The arrows with each group drawn as its first file.
fn merge(arrows: &Arrows, groups: &[&[&str]]) -> Arrows {
    let name = |file: &String| {
        let group = groups.iter().find(|files| files.contains(&file.as_str()));
        group.map_or_else(|| file.clone(), |files| files[0].to_owned())
    };
    let mut merged = Arrows::new();
    for (from, targets) in arrows {
        let from = name(from);
        let targets: BTreeSet<_> = targets.iter().map(name).filter(|to| *to != from).collect();
        merged.entry(from).or_default().extend(targets);
    }
    merged
}

/// The shortest way from `file` back to it, `file` first.
fn way_round(arrows: &Arrows, file: &str) -> Option<Vec<String>> {
    let reached = reached(arrows, file);
    let mut way = VecDeque::new();
    let mut at = reached.get(file)?.clone();
    while at != file {
        way.push_front(at.clone());
        at = reached.get(&at)?.clone();
    }
    way.push_front(file.to_owned());
    Some(way.into())
}

/// Files that `start` reaches, with the file before each on the shortest way.
fn reached(arrows: &Arrows, start: &str) -> BTreeMap<String, String> {
    let mut before = BTreeMap::new();
    let mut next = VecDeque::from([start.to_owned()]);
    while let Some(file) = next.pop_front() {
        for to in arrows.get(&file).into_iter().flatten() {
            if !before.contains_key(to) {
                before.insert(to.clone(), file.clone());
                next.push_back(to.clone());
            }
        }
    }
    before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::arrows;
    use crate::sources::Source;

    fn drawn(files: &[(&str, &str)]) -> Arrows {
        let sources: Vec<_> = files
            .iter()
            .map(|(path, text)| Source::new(path, text))
            .collect();
        arrows(&sources, "x/src/")
    }

    fn pair(a: &str, b: &str) -> Arrows {
        drawn(&[
            ("x/src/lib.rs", "mod a;\nmod b;"),
            ("x/src/a.rs", a),
            ("x/src/b.rs", b),
        ])
    }

    #[test]
    fn a_planted_circle_of_each_kind_is_found() {
        let back = "pub struct B;\nfn f(a: crate::a::A) {}";
        for kind in [
            "use crate::b::B;",
            "use super::b::B;",
            "fn f(b: crate::b::B) {}",
            "fn f(b: super::b::B) {}",
            "pub use crate::b::B;",
            "pub(crate) use super::b::{B as C};",
        ] {
            let found = check(&pair(kind, back), &[]);
            assert_eq!(
                found,
                ["a circle of files: x/src/a.rs -> x/src/b.rs -> x/src/a.rs"],
                "{kind}"
            );
        }
        assert!(check(&pair("use crate::b::B;", "pub struct B;"), &[]).is_empty());
    }

    #[test]
    fn a_circle_through_a_path_attribute_is_found() {
        let back = "use crate::a::A;\npub struct B;";
        for (lib, b) in [
            ("mod a;\n#[path = \"other/c.rs\"]\nmod b;", "other/c"),
            ("mod a;\n#[path = \"./x/../c.rs\"]\npub(crate) mod b;", "c"),
            ("mod a;\n#[path = \"other/mod.rs\"]\nmod b;", "other/mod"),
            (
                "mod a;\n#[path = \".\"]\nmod p { pub mod b; }\nuse p::b;",
                "b",
            ),
        ] {
            let b = format!("x/src/{b}.rs");
            let files = [
                ("x/src/lib.rs", lib),
                ("x/src/a.rs", "use crate::b::B;\npub struct A;"),
                (b.as_str(), back),
            ];
            let found = check(&drawn(&files), &[]);
            let expected = format!("a circle of files: x/src/a.rs -> {b} -> x/src/a.rs");
            assert_eq!(found, [expected], "{lib}");
        }
    }

    #[test]
    fn a_parent_and_its_child_are_a_circle_when_each_uses_the_other() {
        let files = |parent| {
            [
                ("x/src/lib.rs", "mod p;"),
                ("x/src/p.rs", parent),
                ("x/src/p/c.rs", "use super::D;\npub struct C;"),
            ]
        };
        let found = check(
            &drawn(&files("mod c;\npub use c::C;\npub struct D(C);")),
            &[],
        );
        assert_eq!(
            found,
            ["a circle of files: x/src/p.rs -> x/src/p/c.rs -> x/src/p.rs"]
        );
        assert!(check(&drawn(&files("mod c;\npub use c::C;\npub struct D;")), &[]).is_empty());
    }

    #[test]
    fn a_listed_group_is_fine_as_long_as_it_is_a_circle_and_alone() {
        let group: [Group<'_>; 1] = [(&["x/src/a.rs", "x/src/b.rs"], "a token and its issuer")];
        let tied = pair("use crate::b::B;", "use crate::a::A;");
        assert!(check(&tied, &group).is_empty());
        let loose = check(&pair("use crate::b::B;", ""), &group);
        assert!(loose[0].contains("take it off"), "{loose:?}");
        let mut larger = tied;
        larger
            .entry("x/src/b.rs".into())
            .or_default()
            .insert("x/src/c.rs".into());
        larger.insert(
            "x/src/c.rs".into(),
            BTreeSet::from(["x/src/a.rs".to_owned()]),
        );
        assert_eq!(
            check(&larger, &group),
            ["a circle of files: x/src/a.rs -> x/src/c.rs -> x/src/a.rs"]
        );
    }
}
