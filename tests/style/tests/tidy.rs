//! The repository against its own rules. The checks and their planted bad inputs are in
//! `tests/style/src/`, what they are given is in its `lists.rs`.

use std::collections::BTreeMap;
use std::env;
use std::process::Command;
use std::sync::LazyLock;

use ringmark_style::deps::Package;
use ringmark_style::houses::{CIRCLES, FLOORS};
use ringmark_style::lists::{
    DOCUMENTS, LAYOUTS_ALLOWED, MACHINE_ALLOWED, MODELS, OFFSETS_ALLOWED, ORDERED, ORDERINGS_TABLE,
    OUR_BYTES, OWNED, OWNED_ALLOWED, PRODUCER, PRODUCER_DEPENDENCIES_MAX, PRODUCT,
    PROMISES_DETAILS, TRACED, TRACED_ALLOWED, UNSAFE_FILES,
};
use ringmark_style::{
    Source, circles, deps, docs, floors, imports, machine, orderings, owners, platforms, promises,
    read_sources, targets, traced, troubleshooting, unsafety, workspace_root,
};

#[test]
fn unsafe_only_where_listed() {
    report(unsafety::unsafe_files(sources(), UNSAFE_FILES));
}

#[test]
fn every_other_crate_forbids_unsafe() {
    let dirs: Vec<_> = packages()
        .into_values()
        .map(|package| package.dir)
        .collect();
    report(unsafety::crates_without_forbid(
        sources(),
        &dirs,
        UNSAFE_FILES,
    ));
}

#[test]
fn dependency_edges_match_architecture() {
    let sources = sources();
    let table = deps::table(&find(sources, "ARCHITECTURE.md").text).expect("ARCHITECTURE.md");
    let actual = packages()
        .into_iter()
        .map(|(name, package)| (name, package.ours))
        .collect();
    report(deps::compare(&table, &actual));
}

#[test]
fn producer_has_few_dependencies() {
    let Some(package) = packages().remove(PRODUCER) else {
        panic!("no package `{PRODUCER}` in the workspace");
    };
    let names = package.foreign;
    assert!(
        names.len() <= PRODUCER_DEPENDENCIES_MAX,
        "at most {PRODUCER_DEPENDENCIES_MAX}: {names:?}"
    );
}

#[test]
fn no_circle_of_files() {
    let sources = sources();
    let mut findings = Vec::new();
    for package in packages().into_values() {
        let arrows = imports::arrows(sources, &format!("{}/src/", package.dir));
        findings.extend(circles::check(&arrows, CIRCLES));
        findings.extend(imports::globs(sources, &format!("{}/src/", package.dir)));
    }
    report(findings);
}

#[test]
fn no_import_from_a_higher_floor() {
    let sources = sources();
    let houses = FLOORS.iter().flat_map(|&(dir, rooms)| {
        let src = &dir[..dir.find("src/").expect("a directory below src/") + "src/".len()];
        floors::check(&imports::arrows(sources, src), (dir, rooms))
    });
    report(houses.collect());
}

#[test]
fn orderings_are_labelled() {
    let sources = sources();
    let mut findings = Vec::new();
    let table = orderings::table(find(sources, ORDERINGS_TABLE), &mut findings);
    assert!(
        !table.is_empty(),
        "{ORDERINGS_TABLE} holds no table of orderings"
    );
    let is_ordered = |source: &&Source| source.is_rust() && source.is_below(ORDERED);
    let ordered: Vec<_> = sources.iter().filter(is_ordered).collect();
    findings.extend(orderings::check(&table, &ordered));
    report(findings);
}

#[test]
fn every_ordering_is_shown_to_be_needed() {
    let sources = sources();
    let table = orderings::table(find(sources, ORDERINGS_TABLE), &mut Vec::new());
    let is_model = |source: &&Source| source.path.starts_with(MODELS);
    let models: Vec<_> = sources.iter().filter(is_model).collect();
    report(orderings::check_models(&table, &models));
}

#[test]
fn what_two_sides_agree_on_has_one_owner() {
    let product: Vec<_> = product().collect();
    let mut findings = owners::literals(&product, OWNED, OWNED_ALLOWED);
    let is_ours = |source: &&&Source| source.is_below(OUR_BYTES);
    let ours: Vec<_> = product.iter().filter(is_ours).copied().collect();
    findings.extend(owners::offsets(&ours, OFFSETS_ALLOWED));
    findings.extend(owners::native_order(&product));
    findings.extend(owners::layouts(
        &product,
        "format-spec/src/",
        LAYOUTS_ALLOWED,
    ));
    report(findings);
}

#[test]
fn one_rule_says_where_programs_are_traced() {
    let files = ["producer/Cargo.toml", "producer/src/lib.rs"].map(|path| find(sources(), path));
    report(platforms::check(&files, "ringmark_unsupported"));
}

#[test]
fn the_readme_fits_a_short_visit() {
    let readme = &find(sources(), "README.md").text;
    let lines = readme.lines().count();
    assert!(lines <= 150, "README.md: {lines} lines, at most 150");
    let long = readme.lines().filter(|line| line.chars().count() > 120);
    report(
        long.map(|line| format!("README.md: over 120 columns: {line}"))
            .collect(),
    );
}

#[test]
fn traced_code_never_prints_or_ends_the_program() {
    let sources = sources();
    let traced = sources
        .iter()
        .filter(|source| source.is_rust() && source.is_below(TRACED));
    report(
        traced
            .flat_map(|source| traced::check(source, TRACED_ALLOWED))
            .collect(),
    );
}

#[test]
fn no_test_fails_for_the_machines_sake() {
    // Programs that tests trace are none; benches measure.
    let is_ours = |source: &&Source| {
        source.is_rust() && !source.is_below(&["benches/", "tests/programs/", "tests/style/"])
    };
    let tests: Vec<_> = sources().iter().filter(is_ours).collect();
    let found = tests
        .iter()
        .flat_map(|source| machine::check(source, MACHINE_ALLOWED));
    let mut findings: Vec<_> = found.collect();
    findings.extend(machine::unused(&tests, MACHINE_ALLOWED));
    report(findings);
}

#[test]
fn documents_exist_and_their_links_lead_somewhere() {
    let sources = sources();
    let mut findings = docs::missing(sources, DOCUMENTS);
    let markdown = sources.iter().filter(|source| source.path.ends_with(".md"));
    findings.extend(markdown.flat_map(|source| docs::dead_links(&workspace_root(), source)));
    findings.extend(docs::unlisted(
        sources,
        find(sources, "docs/src/SUMMARY.md"),
    ));
    report(findings);
}

#[test]
fn messages_that_are_explained_are_printed() {
    let page = find(sources(), "docs/src/troubleshooting.md");
    let product: Vec<_> = product().collect();
    report(troubleshooting::check(page, &product));
}

#[test]
fn the_ways_through_the_code_lead_through_files_that_are_there() {
    let source = find(sources(), "ARCHITECTURE.md");
    assert_eq!(
        source.text.matches("| | file |").count(),
        5,
        "event, call, page, filter, function without a site"
    );
    report(docs::ways(&workspace_root(), source));
}

#[test]
fn promises_name_their_tests() {
    let is_page = |source: &&Source| source.path.starts_with(PROMISES_DETAILS);
    let pages: Vec<_> = sources().iter().filter(is_page).collect();
    let list = find(sources(), "PROMISES.md");
    report(promises::check(&workspace_root(), list, &pages));
}

#[test]
fn every_test_file_runs() {
    report(targets::check(sources()));
}

fn sources() -> &'static [Source] {
    static SOURCES: LazyLock<Vec<Source>> =
        LazyLock::new(|| read_sources(&workspace_root()).expect("the checkout can be read"));
    assert!(
        SOURCES.len() > 20,
        "only {} files found: every check would pass",
        SOURCES.len()
    );
    &SOURCES
}

/// Rust files of the crates that users run or link.
fn product() -> impl Iterator<Item = &'static Source> {
    sources().iter().filter(|source| {
        let in_src = PRODUCT
            .iter()
            .any(|dir| source.path.starts_with(&format!("{dir}/src/")));
        source.is_rust() && in_src && !source.is_test()
    })
}

fn find<'a>(sources: &'a [Source], path: &str) -> &'a Source {
    let found = sources.iter().find(|source| source.path == path);
    found.unwrap_or_else(|| panic!("{path} is missing"))
}

fn packages() -> BTreeMap<String, Package> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "metadata",
        "--no-deps",
        "--offline",
        "--format-version",
        "1",
    ]);
    let output = command
        .current_dir(workspace_root())
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    deps::packages(&String::from_utf8_lossy(&output.stdout)).expect("cargo's metadata")
}

#[track_caller]
fn report(findings: Vec<String>) {
    assert!(
        findings.is_empty(),
        "{} finding(s):\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn every_mutant_applies() {
    let check = Command::new(workspace_root().join("tests/mutants/run"))
        .arg("--check")
        .output()
        .expect("python3 and git");
    assert!(
        check.status.success(),
        "tests/mutants: {}",
        String::from_utf8_lossy(&check.stderr)
    );
}
