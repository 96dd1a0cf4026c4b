//! `RINGMARK`, as it is given to us and as a traced program finds it.

use std::ffi::OsString;

use ringmark_console::Failure;

/// What a program is traced with unless `RINGMARK` says otherwise: nothing may be missing, and the
/// session of a short-lived program is still there when the recorder finds it.
const WANTED: &str = "mode=discard,ring=1M,session=64M,keep=always";

/// The same where functions are traced: their calls come by the million. DESIGN.md has the figures.
const WANTED_FOR_FUNCTIONS: &str = "mode=discard,ring=8M,session=128M,keep=always";

fn given() -> Option<OsString> {
    std::env::var_os("RINGMARK").filter(|v| !v.is_empty())
}

/// Options of a program that is started to be traced.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ProgramOptions {
    /// Let a thread of CMD whose ring is full wait for the recorder, at most this long at a time,
    /// instead of losing events: from 1ms to 10s. It never waits in a signal handler, with a real-time
    /// policy, or while the recorder is gone
    #[arg(long, value_name = "TIME")]
    wait: Option<String>,
}

impl ProgramOptions {
    /// The option that sets it, where one does.
    pub(crate) fn first(&self) -> Option<&'static str> {
        self.wait.is_some().then_some("--wait")
    }

    /// Checks the options and `RINGMARK`, before a program is started with them.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let given = given().unwrap_or_default();
        let Some(text) = given.to_str() else {
            return Err(Failure::usage("RINGMARK: is not UTF-8"));
        };
        match ringmark::Options::parse(text) {
            Err(error) => return Err(Failure::usage(format!("RINGMARK={text}: {error}"))),
            Ok(Some(options)) if options.memfd => {
                return Err(Failure::usage(format!(
                    "RINGMARK={text}: memfd: found 1, expected 0: an anonymous session has no name by \
                     which the recorder of a new program finds it. Leave memfd out, or start the program \
                     by itself and record it while it runs: 'ringmark record -p PID'"
                )));
            }
            Ok(_) => {}
        }
        if self.wait.is_none() {
            return Ok(());
        }
        let all = self.for_program(false);
        match ringmark::Options::parse(&all.to_string_lossy()) {
            Ok(_) => Ok(()),
            Err(error) => Err(Failure::usage(format!("--{error}"))),
        }
    }

    /// What the program finds in `RINGMARK`. `keep=always` is added to settings without `keep`: a
    /// program that ends before it is found would leave nothing.
    pub(super) fn for_program(&self, functions_are_traced: bool) -> OsString {
        let given = given().unwrap_or_default();
        let mut all = match given.to_str().map(str::trim) {
            Some("" | "1") if functions_are_traced => WANTED_FOR_FUNCTIONS.into(),
            Some("" | "1") => WANTED.into(),
            Some("0") => return given,
            Some(text) if kept_by_us() => format!("{text},keep=always").into(),
            _ => given,
        };
        if let Some(wait) = &self.wait {
            all.push(format!(",wait={wait}"));
        }
        all
    }
}

/// Whether the recording adds `keep=always`, and so removes what is kept.
pub(super) fn kept_by_us() -> bool {
    let given = given().unwrap_or_default();
    let text = given.to_string_lossy();
    !text.split(',').any(|pair| pair.trim().starts_with("keep="))
}

/// Whether `RINGMARK` switches tracing off.
pub(super) fn is_off() -> bool {
    given().is_some_and(|text| text.to_string_lossy().trim() == "0")
}
