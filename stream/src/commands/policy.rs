//! `policy`: signs what is recorded and sent of each service, and shows it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use ringmark_collector::policy_key;
use ringmark_console::json::{Head, JsonOption, Line, object, ts_ns};
use ringmark_console::policy::{moment, ns};
use ringmark_console::units::{parse_duration, size};
use ringmark_console::{Exit, Failure, Sink, now_ns, printable};
use ringmark_format::policy::{
    ANY_SERVICE, POLICY_BYTES_MAX, Policy, ServicePolicy, UncheckedPolicy,
};
use ringmark_reader::stream::{PolicyKey, PolicySigner};
use serde_json::json;

use crate::policy_file;

/// Sign what hosts record and send of each service, for collectors to carry
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The key stays where policies are signed; no collector needs it. Hosts have its
public half: 'ringmark stream --policy-key policy.pub'. 'ringmark collect
--policy FILE' carries the signed policy to them. A host takes a newer serial
only, and none that has ended. At its end each host has its own settings again.

A policy takes away and never adds. What is off on a host stays off, and of two
budgets the smaller one counts.

Examples:
  ringmark policy key keys
  ringmark policy sign fleet.toml --key keys/policy.key -o fleet.policy
  ringmark policy show fleet.policy --policy-key keys/policy.pub")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    json: JsonOption,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Make DIR/policy.key, which stays where it is, and DIR/policy.pub for the hosts
    #[command(after_help = "Example: ringmark policy key keys")]
    Key {
        /// Directory of the key; made if it is not there
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Sign a policy
    #[command(after_help = "\
FILE is TOML. 'default' is for all services that have no section. The last one
of 'events' that matches a type's name decides. A budget is bytes of pages in an
hour, 'burst' what may be sent at once, a tenth of it unless you say more.

  [default]
  budget = \"2G\"

  [service.shop]
  events = [\"disable *\", \"enable * level=warn\"]
  budget = \"200M\"
  burst = \"50M\"

Example:
  ringmark policy sign fleet.toml --key keys/policy.key -o fleet.policy")]
    Sign(Sign),
    /// Show a signed policy, and check it
    #[command(after_help = "\
Exit code 3: it is no policy, or with --policy-key another key signed it.

Example: ringmark policy show fleet.policy --policy-key keys/policy.pub")]
    Show {
        /// The signed policy
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Check that this key signed it (PEM)
        #[arg(long, value_name = "FILE")]
        policy_key: Option<PathBuf>,
    },
}

#[derive(Debug, clap::Args)]
struct Sign {
    /// What holds for each service, in TOML
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The operator's key, which no other user may read
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// For how long it holds, at most 366d
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_valid)]
    valid: Duration,
    /// Its number, greater than that of the policy before; default: milliseconds since 1970
    #[arg(long, value_name = "N", value_parser = parse_serial)]
    serial: Option<u64>,
    /// Where the signed policy is written
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

/// The longest that a policy may hold.
const VALID_MAX: Duration = Duration::from_secs(366 * 86_400);
/// The greatest serial: a host that took a greater one might find none after it. Milliseconds since 1970 reach it in
/// 3,000 years.
const SERIAL_MAX: u64 = 100_000_000_000_000;

fn parse_valid(text: &str) -> Result<Duration, String> {
    let valid = parse_duration(text)?;
    match valid <= VALID_MAX {
        true => Ok(valid),
        false => Err(format!(
            "found {text:?}, expected at most 366d: a policy cannot be taken back before its end"
        )),
    }
}

fn parse_serial(text: &str) -> Result<u64, String> {
    let found = text.parse().ok();
    let serial = found.filter(|serial| (1..=SERIAL_MAX).contains(serial));
    serial.ok_or_else(|| {
        format!("found {text:?}, expected 1 to {SERIAL_MAX}: hosts take greater serials only")
    })
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let mut out = Sink::direct();
        let (policy, checked, said) = match &self.action {
            Action::Key { dir } => {
                let made = policy_key::make(dir);
                let (secret, public) = made.map_err(|e| Failure::usage(e.to_string()))?;
                let text = format!(
                    "{}: signs policies, and stays here\n{}: for the hosts, 'ringmark stream --policy-key'",
                    secret.display(),
                    public.display()
                );
                let files = [secret, public].map(|path| path.display().to_string());
                let fields = json!({"key": files[0], "public_key": files[1]});
                match self.json.is_on() {
                    true => writeln!(
                        out,
                        "{}",
                        Line(object("policy_key", &Head::default(), fields))
                    )?,
                    false => writeln!(out, "{text}")?,
                }
                out.finish()?;
                return Ok(Exit::FINE);
            }
            Action::Sign(sign) => {
                let policy = sign.sign()?;
                (policy, true, format!("{}: signed", sign.output.display()))
            }
            Action::Show { file, policy_key } => {
                let policy = show(file, policy_key.as_deref())?;
                let said = match policy_key {
                    Some(key) => format!("{}: signed by {}", file.display(), key.display()),
                    None => format!(
                        "{}: the signature was not checked, expected --policy-key for that",
                        file.display()
                    ),
                };
                (policy, policy_key.is_some(), said)
            }
        };
        match self.json.is_on() {
            true => writeln!(out, "{}", Line(as_object(&policy, checked)))?,
            false => write!(out, "{said}\n{}", text(&policy))?,
        }
        out.finish()?;
        Ok(Exit::FINE)
    }
}

impl Sign {
    fn sign(&self) -> Result<Policy, Failure> {
        let unusable =
            |error: ringmark_reader::stream::CredentialsError| Failure::usage(error.to_string());
        let signer = PolicySigner::load(&self.key).map_err(unusable)?;
        let services = policy_file::read(&self.file)?;
        if services.is_empty() {
            return Err(Failure::usage(format!(
                "{}: found no section, expected [default] or [service.NAME]; a section without events and budget takes nothing away",
                self.file.display()
            )));
        }
        let now_s = now_ns() / 1_000_000_000;
        let policy = Policy {
            serial: self.serial.unwrap_or(now_ns() / 1_000_000),
            until_s: now_s.saturating_add(self.valid.as_secs().max(1)),
            services,
        };
        let cannot = || Failure::usage(format!("{}: cannot sign", self.key.display()));
        let signed = signer.sign(&policy).ok_or_else(cannot)?;
        if signed.len() > POLICY_BYTES_MAX {
            return Err(Failure::usage(format!(
                "{}: found {} bytes of policy, expected at most {POLICY_BYTES_MAX}",
                self.file.display(),
                signed.len()
            )));
        }
        let failed = |error| Failure::usage(format!("{}: {error}", self.output.display()));
        // A collector that reads it now has the one before.
        let new = self.output.with_extension("new");
        fs::write(&new, signed).map_err(failed)?;
        fs::rename(&new, &self.output).map_err(failed)?;
        Ok(policy)
    }
}

/// A signed policy in a file, as it is. Its signature is not checked: a collector has no key for that.
///
/// # Errors
/// It cannot be read, or is no policy.
pub(crate) fn read_signed(path: &Path) -> Result<Vec<u8>, Failure> {
    let at = |text: String| Failure::usage(format!("{}: {text}", path.display()));
    let bytes = signed_bytes(path).map_err(|error| at(error.to_string()))?;
    let split = UncheckedPolicy::split(&bytes).map_err(|wrong| at(wrong.to_string()))?;
    let parsed = Policy::parse(split.signed).map_err(|wrong| at(wrong.to_string()));
    parsed.map(drop)?;
    Ok(bytes)
}

/// The bytes of a file, of which a policy can have no more. Not what never ends, such as a device.
fn signed_bytes(path: &Path) -> io::Result<Vec<u8>> {
    if !fs::metadata(path)?.is_file() {
        let why = "found no regular file, expected a signed policy";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut bytes = Vec::new();
    let most = POLICY_BYTES_MAX as u64 + 1;
    fs::File::open(path)?.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn show(path: &Path, key: Option<&Path>) -> Result<Policy, Failure> {
    let at =
        |text: String| Failure::unreadable(format!("{}: {}", path.display(), printable(&text)));
    let bytes = signed_bytes(path).map_err(|error| at(error.to_string()))?;
    match key.map(PolicyKey::load) {
        Some(Err(error)) => Err(Failure::usage(error.to_string())),
        Some(Ok(key)) => key.read(&bytes).map_err(|fault| at(fault.to_string())),
        None => {
            let split = UncheckedPolicy::split(&bytes).map_err(|wrong| at(wrong.to_string()))?;
            Policy::parse(split.signed).map_err(|wrong| at(wrong.to_string()))
        }
    }
}

/// What a collector says of the policy that it sends, if it has one: one line.
pub(crate) fn sent(signed: Option<&[u8]>) -> Option<String> {
    let split = UncheckedPolicy::split(signed?).ok()?;
    let policy = Policy::parse(split.signed).ok()?;
    Some(format!("sends policy, {}", period(&policy)))
}

/// Its number and its end.
fn period(policy: &Policy) -> String {
    let until = match ns(policy.until_s) < now_ns() {
        true => "ended",
        false => "until",
    };
    format!(
        "serial {}, {until} {}",
        policy.serial,
        moment(policy.until_s)
    )
}

fn text(policy: &Policy) -> String {
    let mut text = format!("{}\n", period(policy));
    for section in &policy.services {
        let name = match section.service.as_str() {
            ANY_SERVICE => "all other services".to_owned(),
            name => format!("service {}", printable(name)),
        };
        text += &format!("{name}: {}\n", described(section));
    }
    text
}

fn described(section: &ServicePolicy) -> String {
    let rules = section.rules.iter().map(|rule| printable(rule));
    let budget = section
        .budget
        .bytes_per_hour
        .map(|bytes| match section.budget.burst {
            Some(burst) => format!("{} per hour, {} at once", size(bytes), size(burst)),
            None => format!("{} per hour", size(bytes)),
        });
    let all: Vec<_> = rules.chain(budget).collect();
    match all.is_empty() {
        true => "nothing".to_owned(),
        false => all.join(", "),
    }
}

fn as_object(policy: &Policy, checked: bool) -> serde_json::Value {
    let services = policy.services.iter().map(|section| {
        json!({
            "service": section.service,
            "events": section.rules,
            "budget": section.budget.bytes_per_hour,
            "burst": section.budget.burst,
        })
    });
    let fields = json!({
        "serial": policy.serial,
        "until_ts_ns": ts_ns(Some(ns(policy.until_s))),
        "signature_checked": checked,
        "services": services.collect::<Vec<_>>(),
    });
    object("policy", &Head::default(), fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_no_policy() {
        let said = read_signed(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(said.contains("found no regular file"), "{said}");
    }
}
