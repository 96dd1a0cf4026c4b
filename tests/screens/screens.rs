//! Promise: on a terminal no line of a screen is wider than it, whatever names a program has; in a
//! pipe nothing is coloured, and what is not known is not shown as 0.
//!
//! The widths are counted here by rules of its own, not by those of the tools.

#[path = "screens/stage.rs"]
mod stage;
#[path = "screens/tmux.rs"]
mod tmux;

use ringmark_tests::fixture::Fixture;
use ringmark_tests::functions::LIMIT;
use ringmark_tests::terminal::on_terminal;
use ringmark_tests::{binary, has_tools, require_tools, run};
use stage::{Stage, helps};

const WIDTHS: [u16; 4] = [40, 80, 120, 200];

/// Characters that take no column of their own.
const MARKS: [(u32, u32); 6] = [
    (0x0300, 0x036f),
    (0x1ab0, 0x1aff),
    (0x1dc0, 0x1dff),
    (0x200b, 0x200f),
    (0x20d0, 0x20ff),
    (0xfe20, 0xfe2f),
];
/// Characters that take two.
const WIDE: [(u32, u32); 10] = [
    (0x1100, 0x115f),
    (0x2e80, 0x303e),
    (0x3041, 0x4dbf),
    (0x4e00, 0xa4cf),
    (0xac00, 0xd7a3),
    (0xf900, 0xfaff),
    (0xff00, 0xff60),
    (0x1f300, 0x1f64f),
    (0x1f680, 0x1f6ff),
    (0x1f900, 0x1faff),
];

fn is_in(ranges: &[(u32, u32)], c: char) -> bool {
    let c = u32::from(c);
    ranges.iter().any(|(from, to)| (*from..=*to).contains(&c))
}

fn columns(line: &str) -> usize {
    let column = |c: char| match c {
        c if is_in(&MARKS, c) => 0,
        c if is_in(&WIDE, c) => 2,
        _ => 1,
    };
    line.chars().map(column).sum()
}

/// Takes out the escape sequences of colours.
fn without_colour(line: &str) -> String {
    let mut pieces = line.split("\x1b[");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        text += piece.split_once('m').map_or(piece, |(_, rest)| rest);
    }
    text
}

/// What is wrong with a screen of that width; empty: nothing.
fn faults(screen: &str, width: u16) -> Vec<String> {
    let mut faults = Vec::new();
    for line in screen
        .lines()
        .map(|line| without_colour(line.trim_end_matches('\r')))
    {
        if columns(&line) > usize::from(width) {
            faults.push(format!("{} columns of {width}: {line}", columns(&line)));
        }
        if line.contains('\x1b') {
            faults.push(format!("it drives the terminal: {line:?}"));
        }
        if line.split("  ").any(|cell| cell.trim() == "0 ns") {
            faults.push(format!("0 stands for what is not known: {line}"));
        }
    }
    faults
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let stage = Stage::new("screens");
    let mut found = Vec::new();
    for width in WIDTHS {
        for line in stage.screens() {
            let screen = on_terminal(&mut stage.ringmark(&line), width);
            assert!(screen.lines().count() > 1, "{line}: {screen}");
            found.extend(
                faults(&screen, width)
                    .iter()
                    .map(|fault| format!("{line}: {fault}")),
            );
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn help_is_no_wider_than_the_terminal() {
    let fixture = Fixture::new("screens-help");
    let mut found = Vec::new();
    for line in helps() {
        for width in WIDTHS {
            let mut help = fixture.command(binary::path());
            help.args(line.split_whitespace());
            let screen = on_terminal(&mut help, width);
            let says_how = screen.contains("Usage") || screen.contains("ringmark help COMMAND");
            assert!(says_how, "{line}: {screen}");
            let faults = faults(&screen, width);
            found.extend(faults.iter().map(|fault| format!("{line}: {fault}")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// A terminal that counts columns by itself has as many rows as there are lines.
#[test]
fn tmux_has_a_row_for_each_line() {
    if !require_tools(&["gcc"]) || !has_tools(&["tmux"]) {
        return;
    }
    let stage = Stage::new("screens-tmux");
    let lines: Vec<_> = stage.screens().into_iter().chain(helps()).collect();
    for width in WIDTHS {
        let wrapped = tmux::wrapped(&stage, width, &lines);
        assert!(
            wrapped.is_empty(),
            "{width} columns:\n{}",
            wrapped.join("\n")
        );
    }
}

#[test]
fn tmux_sees_a_line_of_81_columns() {
    if !has_tools(&["tmux"]) {
        return;
    }
    let fixture = Fixture::new("screens-planted");
    let rows = |text: &str| tmux::wrapped_text(&fixture, 80, text).len();
    assert_eq!(rows(&"x".repeat(80)), 0);
    assert_eq!(rows(&"x".repeat(81)), 1);
    assert_eq!(rows(&"要".repeat(40)), 0);
    assert_eq!(rows(&format!("x{}", "要".repeat(40))), 1);
    assert_eq!(rows(&"e\u{301}".repeat(80)), 0);
}

#[test]
fn colour_is_where_it_is_wanted() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let stage = Stage::new("screens-colour");
    for line in stage.screens() {
        let piped = run(&mut stage.ringmark(&line), LIMIT).expect("ringmark");
        assert!(!piped.stdout_text().contains('\x1b'), "{line}: {piped:?}");
    }
    let has_colour = |line: &str, name: &str, on_a_terminal: bool| {
        let mut command = stage.ringmark(line);
        if !name.is_empty() {
            command.env(name, "1");
        }
        let text = match on_a_terminal {
            true => on_terminal(&mut command, 80),
            false => run(&mut command, LIMIT).expect("ringmark").stdout_text(),
        };
        text.contains('\x1b')
    };
    for (line, name, on_a_terminal, expected) in [
        ("report events.rmk", "", true, true),
        ("cat events.rmk", "", true, true),
        ("report events.rmk", "NO_COLOR", true, false),
        ("cat events.rmk", "NO_COLOR", true, false),
        (
            "report events.rmk --color never",
            "CLICOLOR_FORCE",
            true,
            false,
        ),
        ("report events.rmk", "CLICOLOR_FORCE", false, true),
        ("report events.rmk --color always", "NO_COLOR", false, true),
    ] {
        let found = has_colour(line, name, on_a_terminal);
        assert_eq!(
            found, expected,
            "{line}, {name:?} set, on a terminal: {on_a_terminal}"
        );
    }
}

#[test]
fn cat_says_the_date_once_and_cuts_nothing_if_asked() {
    if !require_tools(&["gcc"]) {
        return;
    }
    let stage = Stage::new("screens-cat");
    let on = |line: &str, width| on_terminal(stage.ringmark(line).env("TZ", "XST-5:30"), width);
    let screen = on("cat events.rmk", 120);
    let dates = screen
        .lines()
        .filter(|line| line.contains("local time (UTC+05:30)"));
    assert_eq!(dates.count(), 1, "{screen}");
    assert!(screen.lines().any(|line| line.contains('…')), "{screen}");
    assert!(!screen.contains("span="), "{screen}");
    let wide = on("cat events.rmk --wide", 80);
    let (events, _) = wide.split_once("open spans").expect("an open span");
    assert!(!events.contains('…'), "{wide}");
    assert!(events.lines().any(|line| columns(line) > 80), "{wide}");
    // On request the lines are those of a pipe.
    let piped = run(&mut stage.ringmark("cat events.rmk"), LIMIT).expect("ringmark");
    let same = on("cat events.rmk --verbose --color never", 80).replace('\r', "");
    assert_eq!(same, piped.stdout_text());
    assert!(
        same.contains(&format!("names[{}] ", stage.program.id())),
        "{same}"
    );
}

#[test]
fn a_line_of_81_columns_is_seen() {
    assert!(faults(&"x".repeat(80), 80).is_empty());
    assert_eq!(faults(&"x".repeat(81), 80).len(), 1);
    assert_eq!(faults(&format!("x{}", "要".repeat(40)), 80).len(), 1);
    assert_eq!(faults(&format!("x{}", "🚀".repeat(40)), 80).len(), 1);
    assert!(faults(&"e\u{301}".repeat(80), 80).is_empty());
    assert!(faults(&format!("\x1b[1m{}\x1b[0m", "x".repeat(80)), 80).is_empty());
    assert_eq!(faults("a  0 ns  b", 80).len(), 1);
}
