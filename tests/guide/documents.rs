//! Promise: what README.md, the guide and the examples show is what happens. Every command is run,
//! every program built, every output compared; a block that is not run says why.

use std::process::Command;

use ringmark_tests::document_run::{documents, not_run, run_document};
use ringmark_tests::functions::LIMIT;
use ringmark_tests::{require_tools, run, workspace_root};

/// The most blocks that are not run.
const NOT_RUN_MAX: usize = 10;

const C_SERVER: &str = "examples/c_server/README.md";

/// A test for each document; a document without one fails below.
macro_rules! documents {
    ($($name:ident $path:literal)*) => {
        const TESTED: &[&str] = &[C_SERVER, $($path),*];
        $(#[test]
        fn $name() {
            expect_runs($path);
        })*
    };
}

documents! {
    readme "README.md"
    examples "examples/README.md"
    example_async_tasks "examples/async_tasks/README.md"
    example_crash_and_read "examples/crash_and_read/README.md"
    example_deploy "examples/deploy/README.md"
    example_functions "examples/functions/README.md"
    example_hello "examples/hello/README.md"
    example_http_server "examples/http_server/README.md"
    example_struct_events "examples/struct_events/README.md"
    guide_backup "docs/src/backup.md"
    guide_c "docs/src/c.md"
    guide_collector "docs/src/collector.md"
    guide_commands "docs/src/commands.md"
    guide_comparison "docs/src/comparison.md"
    guide_compatibility "docs/src/compatibility.md"
    guide_concepts "docs/src/concepts.md"
    guide_crash "docs/src/crash.md"
    guide_engines "docs/src/engines.md"
    guide_faq "docs/src/faq.md"
    guide_fleet_sizing "docs/src/fleet-sizing.md"
    guide_fleet_tables "docs/src/fleet-tables.md"
    guide_functions "docs/src/functions.md"
    guide_howto_ci "docs/src/howto-ci.md"
    guide_howto_containers "docs/src/howto-containers.md"
    guide_howto_data "docs/src/howto-data.md"
    guide_howto_perfetto "docs/src/howto-perfetto.md"
    guide_howto_size "docs/src/howto-size.md"
    guide_howto_tables "docs/src/howto-tables.md"
    guide_howto_trigger "docs/src/howto-trigger.md"
    guide_install "docs/src/install.md"
    guide_introduction "docs/src/introduction.md"
    guide_migration "docs/src/migration.md"
    guide_operate "docs/src/operate.md"
    guide_rust "docs/src/rust.md"
    guide_slow "docs/src/slow.md"
    guide_stability "docs/src/stability.md"
    guide_stores "docs/src/stores.md"
    guide_summary "docs/src/SUMMARY.md"
    guide_tracing "docs/src/tracing.md"
    guide_troubleshooting "docs/src/troubleshooting.md"
    tutorial_c "docs/src/tutorial-c.md"
    tutorial_functions "docs/src/tutorial-functions.md"
    tutorial_server "docs/src/tutorial-server.md"
}

#[test]
fn example_c_server() {
    if require_tools(&["cmake", "gcc", "make"]) {
        expect_runs(C_SERVER);
    }
}

#[test]
fn pictures_are_as_their_script_draws_them() {
    if !require_tools(&["python3"]) {
        return;
    }
    let mut script = Command::new(workspace_root().join("docs/pictures/concepts.py"));
    let finished = run(script.arg("--check"), LIMIT).expect("python3");
    let _ = finished.expect_code(0);
}

/// Runs a document, and alters each word that it shows: none may go unnoticed.
fn expect_runs(path: &str) {
    let ran = run_document(path);
    let faults: Vec<_> = ran.iter().filter_map(|step| step.fault()).collect();
    assert!(
        faults.is_empty(),
        "{path}:{}",
        faults.join(&format!("\n{path}:"))
    );
    let mut altered = 0;
    for step in ran.iter().filter(|step| !step.is_hidden) {
        let (unseen, seen) = step.unseen_alterations();
        assert!(
            unseen.is_empty(),
            "{path}: as good as what is shown: {unseen:?}"
        );
        altered += seen;
    }
    let outputs = ran
        .iter()
        .filter(|step| !step.is_hidden && !step.command.output.is_empty());
    println!(
        "{path}: {} commands, {} outputs, {altered} altered words found",
        ran.len(),
        outputs.count()
    );
}

#[test]
fn every_document_is_tested() {
    let mut tested = TESTED.to_vec();
    tested.sort_unstable();
    assert_eq!(tested, documents());
}

#[test]
fn few_blocks_are_not_run() {
    let blocks = not_run();
    for (place, why) in &blocks {
        println!("{place}: {why}");
    }
    assert!(blocks.len() <= NOT_RUN_MAX, "{blocks:#?}");
}
