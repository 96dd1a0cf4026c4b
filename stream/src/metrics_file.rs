//! Figures in a file for monitoring: the textfile collector of node_exporter reads it. It is replaced
//! as a whole, so no reader meets half of it.

use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_reader::whole_file;

use ringmark_console::{note, printable};

/// How often it is written.
const WRITE_EVERY: Duration = Duration::from_secs(10);

/// The file, if one is wanted.
#[derive(Debug)]
pub(crate) struct MetricsFile {
    path: Option<PathBuf>,
    next: Instant,
    /// The last attempt failed, which was reported.
    has_failed: bool,
}

impl MetricsFile {
    /// A file that can be written.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn new(path: Option<PathBuf>) -> anyhow::Result<Self> {
        let file = Self {
            path,
            next: Instant::now(),
            has_failed: false,
        };
        let name = || file.path.clone().unwrap_or_default().display().to_string();
        file.replace("").with_context(name)?;
        Ok(file)
    }

    /// Writes what `text` gives, if it is time for that.
    pub(crate) fn write_if_due(&mut self, text: impl FnOnce() -> String) {
        if self.path.is_some() && Instant::now() >= self.next {
            self.next = Instant::now() + WRITE_EVERY;
            self.write(&text());
        }
    }

    /// Writes it now. A failure is reported once, and tried again.
    pub(crate) fn write(&mut self, text: &str) {
        let written = self.replace(text);
        if let (Err(error), Some(path)) = (&written, &self.path)
            && !self.has_failed
        {
            note(&printable(&format!("{}: {error}", path.display())));
        }
        self.has_failed = written.is_err();
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        // node_exporter reads names that end in .prom.
        whole_file::replace(path, "new", text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn it_is_replaced_as_a_whole_and_a_bad_place_is_an_error() {
        let name = format!("ringmark-metrics-{}.prom", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut file = MetricsFile::new(Some(path.clone())).unwrap();
        file.write_if_due(|| "a 1\n".to_owned());
        file.write_if_due(|| unreachable!("it was written now"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "a 1\n");
        assert!(!path.with_extension("new").exists());
        fs::remove_file(&path).unwrap();
        assert!(MetricsFile::new(Some("/proc/nothing/a.prom".into())).is_err());
        MetricsFile::new(None).unwrap().write("a 1\n");
    }
}
