//! Spark with two executors, for tests: the Python package `pyspark`, and Java.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::moto::left_out;

/// Prints where Spark is.
const SPARK: &str = "import os, pyspark; print(os.path.dirname(pyspark.__file__))";

/// Spark begins when both executors are there, so that both get something to do.
const TOGETHER: &str = "\
spark.cores.max 2
spark.scheduler.minRegisteredResourcesRatio 1.0
spark.scheduler.maxRegisteredResourcesWaitingTime 300s
spark.ui.enabled false
";

/// Spark in a directory that it can write to.
pub(crate) struct Spark {
    home: PathBuf,
}

impl Spark {
    /// Makes the directory. `None`: Spark is not here, and the test is named among those that were left out.
    ///
    /// # Panics
    /// When the directory cannot be made.
    pub(crate) fn at(home: PathBuf) -> Option<Self> {
        let java = Command::new("java").arg("-version").output();
        if !java.is_ok_and(|done| done.status.success()) {
            left_out("java");
            return None;
        }
        let there = Command::new("python3").args(["-c", SPARK]).output();
        let Some(there) = there.ok().filter(|done| done.status.success()) else {
            left_out("the Python package pyspark");
            return None;
        };
        let spark = String::from_utf8(there.stdout).expect("UTF-8");
        fs::create_dir_all(home.join("conf")).expect("a directory");
        for entry in fs::read_dir(spark.trim()).expect("Spark") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name");
            if name != "work" && name != "conf" {
                symlink(&path, home.join(name)).expect("a link");
            }
        }
        fs::write(home.join("conf/spark-defaults.conf"), TOGETHER).expect("a file");
        Some(Self { home })
    }

    /// Has a program find it.
    pub(crate) fn found_by(&self, command: &mut Command) {
        command.env("SPARK_HOME", &self.home);
        command.env("SPARK_CONF_DIR", self.home.join("conf"));
    }

    /// How many executors have done something.
    ///
    /// # Panics
    /// When none was started.
    pub(crate) fn executors(&self) -> usize {
        let entries = |path: &Path| -> Vec<PathBuf> {
            let entries = fs::read_dir(path).expect("a directory");
            entries.map(|entry| entry.expect("one").path()).collect()
        };
        let apps = entries(&self.home.join("work"));
        let executors = apps.iter().flat_map(|app| entries(app));
        let logs = executors.filter_map(|path| fs::read_to_string(path.join("stderr")).ok());
        logs.filter(|log| log.contains("Finished task")).count()
    }
}
