//! Floors inside a crate: its rooms, which are folders or single files, in a declared order from
//! the ground up. No file imports from a room above its own.

use super::imports::Arrows;

/// Directory with `/` at its end, and its rooms from the ground up. A room is a file without
/// `.rs`, with the folder of its name if there is one; `lib`, `main` and `mod` are the roof.
pub type House<'h> = (&'h str, &'h [&'h str]);

const ROOFS: [&str; 3] = ["lib", "main", "mod"];

/// Imports from a higher room, files in no room, and rooms without a file.
#[must_use]
pub fn check(arrows: &Arrows, (dir, rooms): House<'_>) -> Vec<String> {
    let mut findings = Vec::new();
    let room = |path: &str| room(dir, path).map(str::to_owned);
    let floor = |path: &str| {
        let name = room(path)?;
        let is_roof = ROOFS.contains(&name.as_str());
        let listed = rooms.iter().position(|room| *room == name);
        listed.or(is_roof.then_some(rooms.len()))
    };
    for (from, targets) in arrows {
        let (Some(name), here) = (room(from), floor(from)) else {
            continue;
        };
        let Some(here) = here else {
            findings.push(format!(
                "{from}: room `{name}` of {dir} is not on the list of floors"
            ));
            continue;
        };
        let up = targets
            .iter()
            .filter(|to| floor(to).is_some_and(|there| there > here));
        findings.extend(up.map(|to| format!("{from} imports {to}, which is above it")));
    }
    let names: Vec<_> = arrows.keys().filter_map(|path| room(path)).collect();
    let empty = rooms
        .iter()
        .filter(|room| !names.iter().any(|name| name == *room));
    findings.extend(empty.map(|room| format!("{dir}{room}: on the list of floors, is not there")));
    findings
}

/// The room of `dir` that a file lies in.
fn room<'p>(dir: &str, path: &'p str) -> Option<&'p str> {
    let inside = path.strip_prefix(dir)?;
    Some(match inside.split_once('/') {
        Some((folder, _)) => folder,
        None => inside.trim_end_matches(".rs"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imports::arrows;
    use crate::sources::Source;

    fn found(low: &str, high: &str) -> Vec<String> {
        let sources = [
            Source::new("x/src/lib.rs", "mod low;\nmod high;\npub use high::a::A;"),
            Source::new("x/src/low.rs", low),
            Source::new("x/src/high/mod.rs", "pub mod a;"),
            Source::new("x/src/high/a.rs", high),
        ];
        check(&arrows(&sources, "x/src/"), ("x/src/", &["low", "high"]))
    }

    #[test]
    fn an_arrow_up_is_found_and_one_down_is_fine() {
        assert!(found("pub struct L;", "use crate::low::L;\npub struct A;").is_empty());
        for up in [
            "use crate::high::a::A;",
            "use crate::A;",
            "fn f() { crate::high::a::g() }",
        ] {
            let found = found(up, "pub struct A;");
            assert_eq!(
                found,
                ["x/src/low.rs imports x/src/high/a.rs, which is above it"],
                "{up}"
            );
        }
        let roof = found("use crate::Defined;", "");
        assert_eq!(
            roof,
            ["x/src/low.rs imports x/src/lib.rs, which is above it"]
        );
    }

    #[test]
    fn each_room_has_its_floor_and_each_floor_its_room() {
        let sources = [
            Source::new("x/src/lib.rs", ""),
            Source::new("x/src/new.rs", ""),
        ];
        let found = check(&arrows(&sources, "x/src/"), ("x/src/", &["gone"]));
        assert!(
            found[0].contains("room `new`") && found[1].contains("x/src/gone"),
            "{found:?}"
        );
        assert_eq!(found.len(), 2);
    }
}
