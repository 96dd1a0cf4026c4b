//! Options that prove who streamer and collector are: certificates over TLS, else a token.

use std::path::PathBuf;
use std::time::SystemTime;

use ringmark_reader::stream::{Address, Credentials, CredentialsError, Side, read_token};

use ringmark_console::Failure;

/// The options of both sides.
#[derive(Debug, clap::Args)]
pub(crate) struct CredentialOptions {
    /// With tls://: trust certificates of the CA in FILE (PEM; see 'ringmark certs')
    #[arg(long, value_name = "FILE", requires_all = ["cert", "key"])]
    ca: Option<PathBuf>,
    /// With tls://: the certificate of this side (PEM)
    #[arg(long, value_name = "FILE", requires = "ca")]
    cert: Option<PathBuf>,
    /// With tls://: its private key (PEM), which no other user may read
    #[arg(long, value_name = "FILE", requires = "ca")]
    key: Option<PathBuf>,
    /// With tcp:// and unix://: the token that streamers show, in the first line of FILE, which no
    /// other user may read
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Allow tcp:// beyond loopback, where others can read and send
    #[arg(long)]
    allow_plain: bool,
}

/// What the files of the options hold.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) credentials: Option<Credentials>,
    pub(crate) token: Option<String>,
    /// What is wrong with a streamer's certificate at this moment.
    pub(crate) outdated: Option<Failure>,
}

impl CredentialOptions {
    /// Reads the files, and checks that the other side would take the certificate.
    ///
    /// # Errors
    /// A file cannot be used, or the options do not fit the addresses.
    pub(crate) fn load(&self, addresses: &[Address], side: Side) -> anyhow::Result<Loaded> {
        let is_tls = |address: &Address| matches!(address, Address::Tls(_));
        let refuse = |text: String| Err(Failure::usage(text).into());
        for address in addresses {
            if address.is_exposed() && !self.allow_plain {
                return refuse(format!(
                    "{address}: others can read and send, expected tls://, a loopback address, or --allow-plain"
                ));
            }
            if is_tls(address) && self.ca.is_none() {
                return refuse(format!("{address}: expected --ca, --cert and --key"));
            }
        }
        if self.ca.is_some() && !addresses.iter().any(is_tls) {
            return refuse(
                "--ca, --cert and --key: expected a tls:// address with them".to_owned(),
            );
        }
        if self.token_file.is_some() && addresses.iter().all(is_tls) {
            let text = "--token-file: over tls:// certificates prove who speaks, expected no token";
            return refuse(text.to_owned());
        }
        let unusable = |error: CredentialsError| Failure::usage(error.to_string());
        let credentials = match (&self.ca, &self.cert, &self.key) {
            (Some(ca), Some(cert), Some(key)) => {
                Some(Credentials::load(ca, cert, key).map_err(unusable)?)
            }
            _ => None,
        };
        let checked = credentials.as_ref().map_or(Ok(()), |credentials| {
            credentials.check(side, SystemTime::now())
        });
        let outdated = match checked {
            // A host's pages are looked after all the same, and its certificate is read again.
            Err(error) if error.is_of_time() && side == Side::Streamer => Some(unusable(error)),
            checked => checked.map(|()| None).map_err(unusable)?,
        };
        let token = self.token_file.as_deref().map(read_token).transpose();
        Ok(Loaded {
            credentials,
            token: token.map_err(unusable)?,
            outdated,
        })
    }
}
