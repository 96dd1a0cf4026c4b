//! `certs`: makes the certificates of a first deployment.

use std::io::Write;
use std::path::PathBuf;
use std::time::SystemTime;

use ringmark_collector::certs::{self, CertsError, Validity};
use ringmark_decoder::Stamper;

use crate::output::{Exit, Failure, Sink};

/// Make certificates for streams over tls://
#[derive(Debug, clap::Args)]
#[command(after_help = "\
One directory is made for each machine, with ca.pem, cert.pem and key.pem; copy
the whole directory there. A host's key lets its owner send under that host's
name; ca.key lets its owner make keys for any host. Files that are there are
never overwritten.

Examples:
  ringmark certs ca certs
  ringmark certs collector certs traces.example 192.0.2.7
  ringmark certs host certs web-1 web-2")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a CA: DIR/ca.pem, and DIR/ca.key, which stays where it is
    Ca {
        /// Directory of the CA; made if it is not there
        dir: PathBuf,
        /// Days until the certificate expires
        #[arg(long, value_name = "N", default_value_t = 3650, value_parser = days())]
        days: u32,
    },
    /// Make DIR/collector: the certificate of a collector
    Collector {
        /// Directory of the CA
        dir: PathBuf,
        /// Names and addresses by which streamers reach the collector
        #[arg(required = true)]
        names: Vec<String>,
        /// Days until the certificate expires
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = days())]
        days: u32,
    },
    /// Make DIR/hosts/NAME for each: the certificate of a host that streams
    Host {
        /// Directory of the CA
        dir: PathBuf,
        /// Names of hosts, as they are to stand in the store
        #[arg(required = true)]
        names: Vec<String>,
        /// Days until the certificate expires
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = days())]
        days: u32,
    },
}

fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=36_500)
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut out = Sink::direct();
        match self.what {
            What::Ca { dir, days } => {
                let validity = Validity::days(days);
                certs::ca(&dir, validity).map_err(failure)?;
                let at = dir.display();
                writeln!(out, "{at}: a CA, good until {}", date(validity))?;
                writeln!(
                    out,
                    "Keep {at}/ca.key here: it can make certificates for any host."
                )?;
                writeln!(out, "Next: ringmark certs collector {at} NAME")?;
            }
            What::Collector { dir, names, days } => {
                let validity = Validity::days(days);
                let made = certs::collector(&dir, &names, validity).map_err(failure)?;
                let (at, names) = (made.display(), names.join(", "));
                writeln!(
                    out,
                    "{at}: for a collector at {names}, good until {}",
                    date(validity)
                )?;
                writeln!(
                    out,
                    "Copy it to that machine as /etc/ringmark, and start there:"
                )?;
                writeln!(
                    out,
                    "  ringmark collect --listen tls://0.0.0.0:7117 --store /var/lib/ringmark \\"
                )?;
                writeln!(out, "{FILES}")?;
                writeln!(out, "Next: ringmark certs host {} NAME", dir.display())?;
            }
            What::Host { dir, names, days } => {
                let validity = Validity::days(days);
                for name in &names {
                    let made = certs::host(&dir, name, validity).map_err(failure)?;
                    let (at, until) = (made.display(), date(validity));
                    writeln!(out, "{at}: for host {name}, good until {until}")?;
                }
                writeln!(
                    out,
                    "Copy each to its machine as /etc/ringmark, and start there:"
                )?;
                writeln!(out, "  ringmark stream --all --to tls://COLLECTOR:7117 \\")?;
                writeln!(out, "{FILES}")?;
            }
        }
        out.finish()?;
        Ok(Exit::FINE)
    }
}

const FILES: &str =
    "      --ca /etc/ringmark/ca.pem --cert /etc/ringmark/cert.pem --key /etc/ringmark/key.pem";

fn failure(error: CertsError) -> Failure {
    Failure::usage(error.to_string())
}

/// The last day of a certificate, `2026-01-31`.
fn date(validity: Validity) -> String {
    let since = validity.until.duration_since(SystemTime::UNIX_EPOCH);
    let ns = u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
    String::from_utf8_lossy(&Stamper::default().stamp(ns)[..10]).into_owned()
}
