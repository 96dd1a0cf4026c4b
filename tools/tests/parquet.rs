//! Promise: what needs Arrow or S3 is done by `ringmark-fleet`, which gets the same command line; where it
//! is not, its name and how to install it are said.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory of its own, removed at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let name = format!("ringmark-parquet-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ringmark(path: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringmark"));
    command.args(arguments).env("PATH", path).current_dir(path);
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn without_the_other_command_its_name_and_installation_are_said() {
    let place = Place::new("none");
    for format in ["parquet", "arrow"] {
        let output = ringmark(&place.0, &["export", "a.rmk", "--format", format]);
        assert_eq!(output.status.code(), Some(2));
        let expected = "ringmark-fleet, found neither next to ringmark nor on PATH";
        assert!(said(&output).contains(expected), "{}", said(&output));
        assert!(said(&output).contains("cargo install --locked --path fleet"));
    }
}

#[test]
fn sql_is_for_another_command() {
    let place = Place::new("query");
    let words = ["query", "SELECT 1", "store", "--format", "json"];
    let output = ringmark(&place.0, &words);
    assert_eq!(output.status.code(), Some(2));
    let expected = "query needs ringmark-query, found neither next to ringmark nor on PATH";
    assert!(said(&output).contains(expected), "{}", said(&output));
    assert!(said(&output).contains("cargo install --locked --path query"));
    let script = place.0.join("ringmark-query");
    fs::write(
        &script,
        "#!/bin/sh\nfor word; do echo \"$word\"; done\nexit 3\n",
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let output = ringmark(&place.0, &words);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let expected = words.join("\n") + "\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
}

#[test]
fn the_other_command_gets_the_same_words_and_its_exit_is_ours() {
    let place = Place::new("there");
    let script = place.0.join("ringmark-fleet");
    fs::write(&script, "#!/bin/sh\necho \"$0: $*\"\nexit 3\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for words in [
        "export a.rmk --format parquet --where took>1ms -o b",
        "export a.rmk --format arrow",
        "export /var/a.rmk --format parquet",
        "export --format arrow -- a.rmk",
    ] {
        let output = ringmark(&place.0, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(3), "{}", said(&output));
        let expected = format!("{}: {words}\n", script.display());
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}

#[test]
fn a_store_in_a_bucket_is_for_the_other_command() {
    let place = Place::new("bucket");
    // `collect` is its command.
    let stream = ringmark_tests::binary::built("ringmark-stream");
    std::os::unix::fs::symlink(stream, place.0.join("ringmark-stream")).unwrap();
    fs::write(
        place.0.join("c.toml"),
        "objects = \"s3://b/c\"\nlisten = []\n",
    )
    .unwrap();
    let all = [
        "export --format csv s3://b/p",
        "report s3://b/p --by host",
        "cat s3://b/p --level warn",
        "verify --json s3://b/p",
        "report - s3://b/p",
        "export s3://b/p",
        "list az://b/p",
        "export az://b/p --format csv",
        "collect --objects s3://b --listen tcp://127.0.0.1:0 --flush 1s",
        "collect --config c.toml",
    ];
    for words in all {
        let output = ringmark(&place.0, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{words}: {}", said(&output));
        let expected = " needs ringmark-fleet, found neither next to ringmark nor on PATH";
        assert!(said(&output).contains(expected), "{}", said(&output));
    }
    let script = place.0.join("ringmark-fleet");
    fs::write(&script, "#!/bin/sh\necho \"$*\"\nexit 3\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    for words in all {
        let output = ringmark(&place.0, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(3), "{words}: {}", said(&output));
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            format!("{words}\n")
        );
    }
    assert!(
        fs::read_dir(&place.0).unwrap().count() == 3,
        "nothing was written"
    );
    for (words, text) in [
        ("cat --follow s3://b/p", "--follow: s3://b/p is a store"),
        (
            "collect --objects gs://b --listen unix:///x",
            "expected file:///DIR, s3://BUCKET/PREFIX or az://CONTAINER/PREFIX",
        ),
    ] {
        let output = ringmark(&place.0, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(said(&output).contains(text), "{}", said(&output));
    }
}

#[test]
fn what_is_wrong_is_said_before() {
    let place = Place::new("wrong");
    for (words, text) in [
        ("export a.rmk --format arrow --where took>", "--where"),
        ("export -p 1 --format parquet", "ringmark snapshot -p 1"),
        (
            "export a.rmk --format parquet --min-time 1ms",
            "--where 'took>=",
        ),
    ] {
        let output = ringmark(&place.0, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{words}");
        assert!(said(&output).contains(text), "{}", said(&output));
        assert!(!said(&output).contains("PATH"), "{}", said(&output));
    }
}
