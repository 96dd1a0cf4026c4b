//! The public interface is a file: every item that the documentation lists, and every hidden one.
//! An item has an example in its documentation that uses it and asserts.
#![forbid(unsafe_code)]

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Most public items; a new one needs another one to go.
const PUBLIC_MAX: usize = 62;
/// Hidden items before there was one hidden module.
const HIDDEN_BEFORE: usize = 14;

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/public-items.txt");

/// An item as the documentation lists it: `fn`, `client::reserve_words`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Item {
    path: String,
    kind: String,
    page: PathBuf,
}

/// Builds the documentation with all features; the folder of the crate's pages.
fn documentation() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("target");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["doc", "--quiet", "--locked", "--no-deps", "--all-features"])
        .args(["--package", "ringmark", "--target-dir"])
        .arg(target)
        .status();
    assert!(status.expect("cargo").success(), "cargo doc fails");
    target.join("doc/ringmark")
}

/// The items of `all.html`: its links lead to pages named `KIND.NAME.html`.
fn listed(pages: &Path) -> Vec<Item> {
    let text = fs::read_to_string(pages.join("all.html")).expect("all.html");
    let links = text.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    let items: BTreeSet<Item> = links.filter_map(|link| item(pages, link)).collect();
    items.into_iter().collect()
}

fn item(pages: &Path, link: &str) -> Option<Item> {
    let (folder, file) = link.rsplit_once('/').unwrap_or(("", link));
    let (kind, name) = file.strip_suffix(".html")?.split_once('.')?;
    let known = [
        "attr", "constant", "derive", "enum", "fn", "macro", "static", "struct", "trait", "type",
        "union",
    ];
    let inside = !folder.starts_with("..") && !name.contains('.');
    (inside && known.contains(&kind)).then(|| Item {
        path: format!("{folder}/{name}")
            .replace('/', "::")
            .trim_start_matches("::")
            .to_owned(),
        kind: kind.to_owned(),
        page: pages.join(link),
    })
}

/// The text of each example on a page.
fn examples(page: &str) -> Vec<String> {
    let blocks = page.split("rust-example-rendered").skip(1);
    blocks
        .filter_map(|block| {
            let code = block.split_once('>')?.1.split("</pre>").next()?;
            let text: String = code
                .split('<')
                .map(|part| part.split_once('>').map_or(part, |(_, text)| text))
                .collect();
            Some(text)
        })
        .collect()
}

/// Whether an example uses the item and asserts.
fn has_example(item: &Item) -> bool {
    let page = fs::read_to_string(&item.page).expect("an item's page");
    let name = item.path.rsplit("::").next().unwrap_or(&item.path);
    let uses = |text: &String| {
        let words = |c: char| !c.is_alphanumeric() && c != '_';
        text.split(words).any(|word| word == name) && text.contains("assert")
    };
    examples(&page).iter().any(uses)
}

/// The hidden items: macros and modules that are marked, and what the marked module re-exports.
fn hidden() -> BTreeSet<String> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = BTreeSet::new();
    for path in rust_files(&src) {
        let text = fs::read_to_string(&path).expect("a source file");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        for at in (0..lines.len()).filter(|at| lines[*at].contains("doc(hidden)")) {
            let declared = lines[at + 1..].iter().find(|line| !line.starts_with("#["));
            found.insert(
                declared
                    .expect("a declaration")
                    .replace([';', '{'], "")
                    .trim()
                    .to_owned(),
            );
        }
    }
    let module = fs::read_to_string(src.join("__private.rs")).expect("__private.rs");
    for exported in module.split("pub use ").skip(1) {
        let paths = exported.split(';').next().unwrap_or_default();
        let (parent, names) = paths.split_once('{').unwrap_or(("", paths));
        for name in names
            .trim_end_matches('}')
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
        {
            let name = name.rsplit([' ', ':']).next().unwrap_or(name);
            assert_ne!(name, "*", "{parent} hides what it exports");
            found.insert(format!("__private::{name}"));
        }
    }
    let declared = [
        "fn ", "struct ", "enum ", "trait ", "mod ", "const ", "static ",
    ];
    for word in declared {
        assert!(
            !module.contains(&format!("pub {word}")),
            "__private.rs only re-exports"
        );
    }
    found
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let inside = |path: PathBuf| match path.is_dir() {
        true => rust_files(&path),
        false => vec![path],
    };
    let mut all: Vec<PathBuf> = paths.flat_map(inside).collect();
    all.retain(|path| path.extension().is_some_and(|end| end == "rs"));
    all
}

#[test]
fn the_public_interface_is_the_listed_one() {
    let items = listed(&documentation());
    let hidden = hidden();
    let mut text = format!("{} public items, all features\n", items.len());
    items
        .iter()
        .for_each(|item| text += &format!("{} {}\n", item.kind, item.path));
    text += &format!("\n{} hidden items\n", hidden.len());
    hidden.iter().for_each(|item| text += &format!("{item}\n"));
    if env::var("RINGMARK_BLESS").is_ok_and(|v| v == "1") {
        fs::write(GOLDEN, &text).expect("the listing");
    }
    let golden = fs::read_to_string(GOLDEN).expect("public-items.txt");
    assert_eq!(
        text, golden,
        "after a decision: RINGMARK_BLESS=1 writes {GOLDEN}"
    );
    assert!(
        (30..=PUBLIC_MAX).contains(&items.len()),
        "{} items",
        items.len()
    );
    assert!(hidden.len() < HIDDEN_BEFORE, "{hidden:?}");
    let without: Vec<&str> = items
        .iter()
        .filter(|item| !has_example(item))
        .map(|item| item.path.as_str())
        .collect();
    assert!(
        without.is_empty(),
        "no example that uses and asserts: {without:?}"
    );
}

#[test]
fn an_example_without_the_item_or_an_assertion_is_none() {
    let page = r#"<pre class="rust rust-example-rendered"><code><span>assert</span>!(<a>ticks</a>() == 0)</code></pre>
        <pre class="rust rust-example-rendered"><code>emit(&amp;x)</code></pre>"#;
    assert_eq!(examples(page), ["assert!(ticks() == 0)", "emit(&amp;x)"]);
    let write = |text: &str| {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("page.html");
        fs::write(&path, text).expect("a page");
        path
    };
    let item = |path: &str, page: &str| Item {
        path: path.to_owned(),
        kind: "fn".to_owned(),
        page: write(page),
    };
    assert!(has_example(&item("ticks", page)));
    assert!(!has_example(&item("emit", page)));
    assert!(!has_example(&item("tick", page)));
}
