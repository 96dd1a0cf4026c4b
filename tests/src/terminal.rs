//! Commands on a terminal of their own.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// What a command prints on a terminal of that width.
///
/// # Panics
/// When there is no terminal to be had, or the command does not end with 0 or 1.
pub fn on_terminal(command: &mut Command, width: u16) -> String {
    let main = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&main).expect("the right to it");
    unlockpt(&main).expect("an open terminal");
    let size = Winsize {
        ws_row: 24,
        ws_col: width,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&main, size).expect("a size");
    let name = ptsname(&main, Vec::new()).expect("its name");
    let mut other = File::options();
    other.read(true).write(true);
    let other = other
        .open(name.to_str().expect("a path"))
        .expect("its other end");
    command
        .stdout(other)
        .stderr(Stdio::null())
        .stdin(Stdio::null());
    command.env("TERM", "xterm-256color");
    let mut child = command.spawn().expect("ringmark starts");
    command.stdout(Stdio::null());
    let mut printed = Vec::new();
    // It ends with an error, once no process has the other end.
    let _ = File::from(main).read_to_end(&mut printed);
    let status = child.wait().expect("it was started");
    assert!(
        status.code().is_some_and(|code| code < 2),
        "{command:?}: {status}"
    );
    String::from_utf8(printed).expect("UTF-8")
}
