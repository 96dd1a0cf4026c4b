//! The browser that tests look at pages with.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::fixture::Fixture;
use crate::tools::log_skip;
use crate::{run, workspace_root};

const BROWSERS: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
/// How long the browser may take on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// The browser that is there, and node that speaks to it; `None`: the test is left out, and that is
/// said.
#[must_use]
pub fn browser() -> Option<&'static str> {
    let empty = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--dump-dom",
        "about:blank",
    ];
    let found = BROWSERS.into_iter().find(|name| works(name, &empty));
    let found = found.filter(|_| works("node", &["-e", "0"]));
    if found.is_none() {
        log_skip("pages of report --html: need chromium and node");
    }
    found
}

/// Whether a program does this.
fn works(name: &str, arguments: &[&str]) -> bool {
    let done = Command::new(name).args(arguments).output();
    done.is_ok_and(|done| done.status.success())
}

/// What a script of `tests/independent` says of a page, as JSON.
///
/// # Panics
/// When it fails: the page did not show its trace.
#[must_use]
pub fn look(
    fixture: &Fixture,
    browser: &str,
    script: &str,
    page: &Path,
    arguments: &[&str],
) -> Value {
    let mut command = Command::new("node");
    command.arg(workspace_root().join("tests/independent").join(script));
    command.arg(browser).arg(fixture.path("profile")).arg(page);
    let done = run(command.args(arguments), LIMIT).expect("node");
    assert_eq!(done.code(), 0, "{}", done.stderr_text());
    serde_json::from_slice(&done.stdout).expect("JSON")
}

/// What a page holds after its scripts ran, as `page_shown.mjs` says it. Nothing in it failed, said anything, or
/// asked the network.
///
/// # Panics
/// When something did.
#[must_use]
pub fn shown(fixture: &Fixture, browser: &str, page: &Path) -> Value {
    let found = look(fixture, browser, "page_shown.mjs", page, &[]);
    let nothing = Value::Array(Vec::new());
    assert_eq!(found["errors"], nothing, "errors");
    assert_eq!(found["requests"], nothing, "requests");
    assert_eq!(found["ran"], false, "a text of the trace ran");
    found
}

/// The HTML of a page: see [`shown`].
///
/// # Panics
/// As [`shown`].
#[must_use]
pub fn html_of(fixture: &Fixture, browser: &str, page: &Path) -> String {
    let found = shown(fixture, browser, page);
    found["html"].as_str().expect("HTML").to_owned()
}
