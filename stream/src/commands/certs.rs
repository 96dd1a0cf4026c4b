//! `certs`: makes the certificates of a first deployment.

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ringmark_collector::certs;
use ringmark_collector::certs::{CertsError, Key, Validity};
use ringmark_console::json::{Head, JsonOption};
use ringmark_console::{Exit, Failure, Sink, json};
use ringmark_decoder::Stamper;

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
  ringmark certs host certs web-1 web-2
  ringmark certs host certs web-3 --request request.pem")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    json: JsonOption,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Make a CA: DIR/ca.pem, and DIR/ca.key, which stays where it is
    #[command(after_help = "Example: ringmark certs ca certs")]
    Ca {
        /// Directory of the CA; made if it is not there
        dir: PathBuf,
        /// Days until the certificate expires
        #[arg(long, value_name = "N", default_value_t = 3650, value_parser = days())]
        days: u32,
    },
    /// Make DIR/collector: the certificate of a collector
    #[command(after_help = "Example: ringmark certs collector certs traces.example 192.0.2.7")]
    Collector {
        /// Directory of the CA
        dir: PathBuf,
        /// Names and addresses by which streamers reach the collector
        #[arg(required = true)]
        names: Vec<String>,
        /// Days until the certificate expires
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = days())]
        days: u32,
        /// Certify the key of this request; no key is made here
        #[arg(long, value_name = "FILE")]
        request: Option<PathBuf>,
    },
    /// Make DIR/hosts/NAME for each: the certificate of a host that streams
    #[command(after_help = "Example: ringmark certs host certs web-1 web-2")]
    Host {
        /// Directory of the CA
        dir: PathBuf,
        /// Names of hosts, as they are in the store
        #[arg(required = true)]
        names: Vec<String>,
        /// Days until the certificate expires
        #[arg(long, value_name = "N", default_value_t = 365, value_parser = days())]
        days: u32,
        /// Certify the key of this request, for one host; no key is made here
        #[arg(long, value_name = "FILE")]
        request: Option<PathBuf>,
    },
    /// Make DIR/key.pem on the machine that uses it, and DIR/request.pem for the CA
    #[command(after_help = "Example: ringmark certs request /etc/ringmark")]
    Request {
        /// Directory on that machine; made if it is not there
        dir: PathBuf,
    },
}

fn days() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=36_500)
}

/// A certificate that was made, or the request for one.
struct Made {
    /// `ca`, `collector`, `host` or `request`.
    of: &'static str,
    /// Its directory.
    path: PathBuf,
    names: Vec<String>,
    /// `None`: a request has none.
    validity: Option<Validity>,
}

impl Made {
    fn json(&self) -> serde_json::Value {
        let fields = serde_json::json!({
            "of": self.of,
            "path": self.path.display().to_string(),
            "names": self.names,
            "until_ts_ns": json::ts_ns(self.validity.map(until_ns)),
        });
        json::object("certificate", &Head::default(), fields)
    }

    fn text(&self) -> String {
        let at = self.path.display();
        let Some(validity) = self.validity else {
            return format!("{at}: a key, and the request for its certificate");
        };
        let until = date(validity);
        let whose = match self.of {
            "ca" => "a CA".to_owned(),
            "host" => format!("for host {}", self.names.join(", ")),
            _ => format!("for a collector at {}", self.names.join(", ")),
        };
        format!("{at}: {whose}, good until {until}")
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut out = Sink::direct();
        let next = self.what.make(|made| match self.json.is_on() {
            true => writeln!(out, "{}", json::Line(made.json())),
            false => writeln!(out, "{}", made.text()),
        })?;
        if !self.json.is_on() {
            writeln!(out, "{next}")?;
        }
        out.finish()?;
        Ok(Exit::FINE)
    }
}

impl What {
    /// Makes them and tells of each; the text says what to do with them.
    fn make(self, mut tell: impl FnMut(Made) -> io::Result<()>) -> anyhow::Result<String> {
        match self {
            Self::Ca { dir, days } => {
                let made = ca(&dir, Validity::days(days))?;
                tell(made)?;
                Ok(after_ca(&dir))
            }
            Self::Collector {
                dir,
                names,
                days,
                request,
            } => {
                let next = after_collector(&dir);
                tell(collector(&dir, names, days, request.as_deref())?)?;
                Ok(next)
            }
            Self::Host {
                dir,
                names,
                days,
                request,
            } => {
                if request.is_some() && names.len() > 1 {
                    let text = "--request: expected one host, since each has a key of its own";
                    return Err(Failure::usage(text).into());
                }
                // A mistake in one of them makes none.
                certs::check_names(&names).map_err(failure)?;
                for name in names {
                    tell(host(&dir, name, days, request.as_deref())?)?;
                }
                Ok(format!(
                    "Copy each to its machine as /etc/ringmark, and start there:\n  \
                     ringmark stream --all --to tls://COLLECTOR:7117 \\\n{FILES}"
                ))
            }
            Self::Request { dir } => {
                let next = after_request(&dir);
                tell(request(dir)?)?;
                Ok(next)
            }
        }
    }
}

fn ca(dir: &Path, validity: Validity) -> Result<Made, Failure> {
    certs::ca(dir, validity).map_err(failure)?;
    Ok(Made {
        of: "ca",
        path: dir.to_owned(),
        names: Vec::new(),
        validity: Some(validity),
    })
}

fn after_ca(dir: &Path) -> String {
    let at = dir.display();
    format!(
        "Keep {at}/ca.key here: it can make certificates for any host.\n\
         Next: ringmark certs collector {at} NAME"
    )
}

fn collector(
    dir: &Path,
    names: Vec<String>,
    days: u32,
    request: Option<&Path>,
) -> Result<Made, Failure> {
    let validity = Validity::days(days);
    let made = certs::collector_for(dir, &names, validity, key_of(request));
    Ok(Made {
        of: "collector",
        path: made.map_err(failure)?,
        names,
        validity: Some(validity),
    })
}

fn after_collector(dir: &Path) -> String {
    format!(
        "Copy it to that machine as /etc/ringmark, and start there:\n  \
         ringmark collect --listen tls://0.0.0.0:7117 --store /var/lib/ringmark \\\n\
         {FILES}\nNext: ringmark certs host {} NAME",
        dir.display()
    )
}

fn host(dir: &Path, name: String, days: u32, request: Option<&Path>) -> Result<Made, Failure> {
    let validity = Validity::days(days);
    let made = certs::host_for(dir, &name, validity, key_of(request));
    Ok(Made {
        of: "host",
        path: made.map_err(failure)?,
        names: vec![name],
        validity: Some(validity),
    })
}

fn request(dir: PathBuf) -> Result<Made, Failure> {
    certs::request(&dir).map_err(failure)?;
    Ok(Made {
        of: "request",
        path: dir,
        names: Vec::new(),
        validity: None,
    })
}

fn after_request(dir: &Path) -> String {
    let at = dir.display();
    format!(
        "Copy {at}/request.pem to the machine of the CA, and there:\n  \
         ringmark certs host CA NAME --request request.pem\n\
         Then copy ca.pem and cert.pem from there to {at}."
    )
}

/// The key of a certificate: that of a request, or a new one.
fn key_of(request: Option<&Path>) -> Key<'_> {
    request.map_or(Key::New, Key::OfRequest)
}

const FILES: &str =
    "      --ca /etc/ringmark/ca.pem --cert /etc/ringmark/cert.pem --key /etc/ringmark/key.pem";

fn failure(error: CertsError) -> Failure {
    Failure::usage(error.to_string())
}

/// The end of a certificate, ns since 1970.
fn until_ns(validity: Validity) -> u64 {
    let since = validity.until.duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX)
}

/// The last day of a certificate, `2026-01-31`.
fn date(validity: Validity) -> String {
    let stamp = Stamper::default().stamp(until_ns(validity))[..10].to_vec();
    String::from_utf8_lossy(&stamp).into_owned()
}
