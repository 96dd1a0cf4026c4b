//! `view`: opens a trace in Perfetto's page, which fetches it from this machine.

use std::fmt::Write as _;
use std::io::{self, ErrorKind, Write as _};
use std::process::{Command, Stdio};
use std::time::Duration;

use ringmark_export::Format;

use super::export::{exit_of, tell};
use crate::input::exported::ExportedOptions;
use crate::input::trace_files::Input;
use crate::output::endings;
use crate::viewer::{Ended, Server};
use ringmark_console::signals::Signals;
use ringmark_console::units::{counted, duration, parse_duration, whole_ns};
use ringmark_console::{Exit, Failure, note};

/// The page that shows the trace.
const ORIGIN: &str = "https://ui.perfetto.dev";

/// Open a trace in Perfetto's page: served once, on this machine only
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The trace goes from this machine to the page in your browser and nowhere else.
Only the page of https://ui.perfetto.dev gets it, at a new path each time,
and once: then the command ends. It ends on Ctrl-C too, and after
--wait.

The browser asks whether the page may reach this device: allow it, or the page
shows nothing. Without a network use 'ringmark report --html'.

On another machine, run the 'ssh -L' line that is printed where your browser is,
then open the address there.

What the trace holds of each event: see 'ringmark export --help', perfetto.

Examples:
  ringmark view run.rmk
  ringmark view run.rmk --last 10s --open
  ringmark view -p 812")]
pub(crate) struct Args {
    #[command(flatten)]
    input: Input,
    #[command(flatten)]
    exported: ExportedOptions,
    /// Port of 127.0.0.1 to serve on; Perfetto's page may reach no other than 9001, so a browser
    /// reaches others through 'ssh -L' only
    #[arg(long, value_name = "PORT", default_value_t = PAGE_PORT)]
    port: u16,
    /// End if the page has not fetched the trace after this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration, default_value = "10m")]
    wait: Duration,
    /// Open the address in a browser, with xdg-open
    #[arg(long)]
    open: bool,
}

/// The only port of this machine that the page may fetch from.
const PAGE_PORT: u16 = 9001;

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let (dump, is_running) = self.exported.read(&self.input)?;
        let plan = self.exported.plan(&dump)?;
        let server = Server::listen(self.port, ORIGIN, secret_path()?)
            .map_err(|error| self.cannot_listen(&error))?;
        let signals = Signals::watch()?;
        let address = address(&server.served.path);
        let slices = counted(plan.counts().slices, "slice");
        note(&format!("{slices}; open this address in a browser:"));
        writeln!(io::stdout(), "{address}")?;
        tell_how(server.served.port, self.wait);
        if self.open {
            open(&address);
        }
        let ended = server.serve(self.wait, &signals.stop, |body| {
            let written = ringmark_export::write(&plan, Format::Perfetto, body, |_, _| ())?;
            tell(&written);
            self.exported.tell_if_nothing(&dump, &written.shown);
            Ok(())
        })?;
        endings::tell(&dump);
        match ended {
            Ended::Fetched => note("the page has the trace"),
            Ended::Stopped => {}
            Ended::TimedOut => {
                let text = format!(
                    "the page did not fetch the trace in {}: was the question of the browser \
                     allowed? 'ringmark report --html' needs no page",
                    duration(whole_ns(self.wait))
                );
                let exit = Exit::NO_TARGET;
                return Err(Failure { exit, text }.into());
            }
        }
        Ok(signals
            .received()
            .map_or_else(|| exit_of(&dump, is_running), |_| Exit::FINE))
    }

    fn cannot_listen(&self, error: &io::Error) -> Failure {
        let hint = match error.kind() {
            ErrorKind::AddrInUse => {
                "; another 'ringmark view' may run. 'ringmark export' writes a file that you can \
                 drop on the page"
            }
            _ => "",
        };
        Failure {
            exit: Exit::NO_TARGET,
            text: format!("127.0.0.1:{}: {error}{hint}", self.port),
        }
    }
}

/// A path that no other user of the machine, and no other page, guesses.
fn secret_path() -> anyhow::Result<String> {
    let mut secret = [0; 16];
    let filled = rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())?;
    anyhow::ensure!(filled == secret.len(), "getrandom: too few bytes");
    let mut path = "/".to_owned();
    for byte in secret {
        write!(path, "{byte:02x}")?;
    }
    Ok(path + "/trace.pftrace")
}

/// The address of the page, with that of the trace. The page reaches [`PAGE_PORT`] only.
fn address(path: &str) -> String {
    format!("{ORIGIN}/#!/?url=http://127.0.0.1:{PAGE_PORT}{path}")
}

fn tell_how(port: u16, wait: Duration) {
    note("the browser asks whether the page may reach this device or local network: allow it");
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let host = ringmark_console::printable(&host);
    note(&format!(
        "if the browser is on another machine, run there: ssh -L {PAGE_PORT}:127.0.0.1:{port} {host}"
    ));
    note(&format!(
        "no network? 'ringmark report --html' makes a page that needs none. Ctrl-C or {} end this",
        duration(whole_ns(wait))
    ));
}

/// Opens the address; one that cannot be opened can still be copied.
fn open(address: &str) {
    let mut command = Command::new("xdg-open");
    command
        .arg(address)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Err(error) = command.stderr(Stdio::null()).spawn() {
        note(&format!("--open: xdg-open: {error}"));
    }
}
