//! A server that speaks the protocol of Azure Blob Storage, for tests: the npm package `azurite`. `./test fleet`
//! installs it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::moto::{HeldPort, left_out};

/// The account that the server has, and its key, which everybody knows.
const ACCOUNT: &str = "devstoreaccount1";
const KEY: &str =
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
/// Makes a container when the server listens, and says so. Serves until its standard input ends.
const SERVE: &str = "\
const [account, key, port] = process.argv.slice(1);
const http = require('http');
const crypto = require('crypto');
process.stdin.on('end', () => process.exit()).resume();
process.argv.splice(1, 3, 'azurite-blob', '--blobPort', port, '--inMemoryPersistence', '--silent',
    '--disableTelemetry', '--skipApiVersionCheck');
require('azurite/dist/src/blob/main.js');
function make() {
    const headers = { 'x-ms-date': new Date().toUTCString(), 'x-ms-version': '2021-12-02' };
    const text = ['PUT', ...Array(11).fill(''), ...Object.entries(headers).map((e) => e.join(':')),
        `/${account}/${account}/bucket`, 'restype:container'].join('\\n');
    const signed = crypto.createHmac('sha256', Buffer.from(key, 'base64')).update(text).digest('base64');
    headers.Authorization = `SharedKey ${account}:${signed}`;
    const path = `/${account}/bucket?restype=container`;
    http.request({ port, path, method: 'PUT', headers }, (answer) => console.log(answer.statusCode))
        .on('error', () => setTimeout(make, 50)).end();
}
make();
";

/// The server, with a container named `bucket`.
pub(crate) struct Azurite {
    server: Child,
    port: HeldPort,
}

impl Azurite {
    /// Starts it. `None`: it is not installed, and this test is named among those that were left out.
    ///
    /// # Panics
    /// When it does not start.
    pub(crate) fn start() -> Option<Self> {
        let mut probe = Command::new("node");
        let probe = probe.args(["-e", "require.resolve('azurite')"]);
        let probe = probe.stderr(Stdio::null()).status();
        if !probe.is_ok_and(|status| status.success()) {
            left_out("the npm package azurite");
            return None;
        }
        let port = HeldPort::new();
        let mut server = Command::new("node")
            .args(["-e", SERVE, ACCOUNT, KEY, &port.number().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("node");
        let said = BufReader::new(server.stdout.take().expect("a pipe"));
        let mut said = said.lines().map(|line| line.expect("text"));
        let made = said.find(|line| line.starts_with(|first: char| first.is_ascii_digit()));
        assert_eq!(made.as_deref(), Some("201"), "azurite does not serve");
        Some(Self { server, port })
    }

    /// Its `HOST:PORT`.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port.number())
    }
}

impl Drop for Azurite {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The settings of a client of a server at `HOST:PORT`.
pub(crate) fn settings(address: &str) -> Vec<(&'static str, String)> {
    vec![
        ("AZURE_STORAGE_ACCOUNT_NAME", ACCOUNT.to_owned()),
        ("AZURE_STORAGE_ACCOUNT_KEY", KEY.to_owned()),
        (
            "AZURE_STORAGE_ENDPOINT",
            format!("http://{address}/{ACCOUNT}"),
        ),
        ("AZURE_ALLOW_HTTP", "true".to_owned()),
    ]
}
