//! Promise: the page of `profile --html` has all that the tables have, shows it in a browser, and asks no network.

use std::fs;

use serde_json::Value;

use ringmark_tests::browser::{browser, look};
use ringmark_tests::fixture::{Fixture, SOON};
use ringmark_tests::functions::{LIMIT, compile};
use ringmark_tests::{Running, require_tools, ringmark, run, wait_until};

/// The page of a shop, with the process that it is of.
fn page_of_shop(fixture: &Fixture) -> Option<(String, u32)> {
    if !require_tools(&["gcc"]) {
        return None;
    }
    let shop = compile(fixture, "../c/shop.c", "shop", "-O2 -pthread");
    let shop = Running::start(&mut fixture.command(shop)).expect("a shop");
    wait_until(SOON, "four threads", || {
        let threads = fs::read_dir(format!("/proc/{}/task", shop.id()))
            .ok()?
            .count();
        (threads == 4).then_some(())
    });
    let mut command = ringmark();
    let pid = shop.id().to_string();
    command.args(["profile", "--for", "700ms", "-n", "1", "-p", &pid, "--html"]);
    let said = run(command.arg(fixture.path("page.html")), LIMIT).expect("ringmark");
    let said = said.expect_code(0).stderr_text();
    assert!(said.contains("page.html: "), "{said}");
    let page = fs::read_to_string(fixture.path("page.html")).expect("a page");
    Some((page, shop.id()))
}

/// The page's data.
fn data(page: &str) -> Value {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("an element");
    let (json, _) = rest.split_once("</script>").expect("its end");
    serde_json::from_str(json).expect("JSON")
}

fn array<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    value[key].as_array().expect("an array")
}

fn sum(rows: &[Value], place: usize) -> u64 {
    rows.iter()
        .map(|row| row[place].as_u64().expect("a number"))
        .sum()
}

#[test]
fn the_page_has_all_rows_and_its_sums_agree() {
    let fixture = Fixture::new("profile-page");
    let Some((page, pid)) = page_of_shop(&fixture) else {
        return;
    };
    let data = data(&page);
    assert_eq!(data["title"], format!("shop[{pid}]"));
    let names = array(&data, "names");
    let name = |place: &Value| names[place.as_u64().expect("a place") as usize].as_str();
    let sold = array(&data, "waiting").iter().find(|row| {
        let frames = row[4].as_array().expect("frames");
        frames.iter().any(|frame| name(frame) == Some("sell"))
            && name(&row[3]).is_some_and(|what| what.starts_with("mutex of clerk["))
    });
    let frames = sold.expect("the seller waits for the clerk")[4].as_array();
    let frames: Vec<_> = frames.expect("frames").iter().filter_map(name).collect();
    let place = |name| frames.iter().position(|frame| *frame == name);
    assert!(place("seller") < place("sell"), "{frames:?}");
    // Waits make up the waiting time of the threads, as far as those that ended in a look were seen.
    let threads = array(&data, "threads");
    assert_eq!(threads.len(), 4);
    let waited = sum(array(&data, "waiting"), 0) + data["unseen_ns"].as_u64().expect("ns");
    let off = waited.abs_diff(sum(threads, 4));
    assert!(off < 40_000_000, "{off} ns are in no wait");
    // What ran is once in the flame graph: in its functions, and in the kernel.
    let running = array(&data, "running");
    let own = sum(array(&data, "functions"), 0);
    assert_eq!(sum(running, 0), own);
}

#[test]
fn a_browser_shows_it() {
    let fixture = Fixture::new("profile-page-browser");
    let Some(browser) = browser() else { return };
    let Some((_, pid)) = page_of_shop(&fixture) else {
        return;
    };
    let page = fixture.path("page.html");
    let found = look(&fixture, browser, "profile_shown.mjs", &page, &["mutex of"]);
    let nothing = Value::Array(Vec::new());
    assert_eq!(found["errors"], nothing);
    assert_eq!(found["requests"], nothing);
    assert_eq!(found["title"], format!("shop[{pid}]"));
    assert_eq!(found["flames"].as_array().map(Vec::len), Some(2), "{found}");
    let rows = |table: &Value| table.as_array().map_or(0, Vec::len);
    let headings: Vec<_> = array(&found, "tables")
        .iter()
        .map(|of| &of["heading"])
        .collect();
    assert_eq!(headings, ["Functions", "Waits", "Threads"]);
    assert_eq!(rows(&found["tables"][2]["rows"]), 5, "{found}");
    // A search leaves the rows that have its text.
    let searched = array(&found, "searched");
    assert_eq!(searched.len(), 1, "{found}");
    assert_eq!(searched[0]["heading"], "Waits");
    assert!(
        found["hovered"]
            .as_str()
            .is_some_and(|text| text.contains('%')),
        "{found}"
    );
}

#[test]
fn a_place_that_is_none_is_said_before_the_time_is_over() {
    let fixture = Fixture::new("profile-page-place");
    let pid = std::process::id().to_string();
    for place in ["-", "/no/such/folder/page.html", "/tmp"] {
        let mut command = ringmark();
        command.args(["profile", "--for", "10m", "-p", &pid, "--html", place]);
        let said = run(&mut command, LIMIT).expect("ringmark").expect_code(2);
        let said = said.stderr_text();
        assert!(said.contains(&format!("--html {place}: ")), "{said}");
        assert!(said.contains("expected the name of a file"), "{said}");
    }
    drop(fixture);
}
