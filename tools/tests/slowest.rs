//! `report --slowest`: the command that it gives shows the lines of that span's process, and no others.

use crate::common;

use common::{Stage, json_lines};
use ringmark_tests::json_schema::checked;

#[test]
fn the_command_chooses_the_process_of_the_span() {
    let stage = Stage::new("slowest");
    stage.record("a.rmk", &["1", "60", "0", "mix"]);
    stage.record("b.rmk", &["1", "60", "0", "mix"]);
    let pid_of =
        |file| json_lines(&stage.run(&["cat", file, "--json"]).expect_code(0))[0]["pid"].clone();
    for chosen in [
        vec![],
        vec!["--pid".to_owned(), pid_of("b.rmk").to_string()],
    ] {
        let mut words = vec!["report", "a.rmk", "b.rmk", "--slowest", "1", "--json"];
        words.extend(chosen.iter().map(String::as_str));
        let found = checked(&stage.run(&words).expect_code(0).stdout_text());
        let command: Vec<_> = found[0]["lines"].as_array().unwrap().iter().collect();
        let command: Vec<_> = command.iter().map(|word| word.as_str().unwrap()).collect();
        let pid = found[0]["pid"].to_string();
        let at = command.iter().position(|word| *word == "--pid");
        let named = at.and_then(|at| command.get(at + 1));
        assert_eq!(named, Some(&&pid[..]), "{command:?}");
        let lines = [&command[1..], &["--json"]].concat();
        let shown = json_lines(&stage.run(&lines).expect_code(0));
        assert!(!shown.is_empty(), "{command:?}");
        assert!(shown.iter().all(|line| line["pid"] == found[0]["pid"]));
    }
    // Of one process there is nothing to choose.
    let words = ["report", "a.rmk", "--slowest", "1", "--json"];
    let found = checked(&stage.run(&words).expect_code(0).stdout_text());
    let lines = found[0]["lines"].as_array().unwrap();
    assert!(!lines.contains(&"--pid".into()), "{lines:?}");
}
