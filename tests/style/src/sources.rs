//! The files of the checkout that the checks look at.

use std::path::Path;
use std::{fs, io};

/// Directories without sources of ours.
const SKIPPED_DIRS: [&str; 3] = ["target", "node_modules", "__pycache__"];
/// File names and endings of text that people write.
const TEXT: [&str; 9] = [
    ".rs", ".md", ".toml", ".txt", ".c", ".h", ".sh", ".py", ".S",
];

/// One text file.
#[derive(Debug)]
pub struct Source {
    /// Path from the root of the checkout, with `/`.
    pub path: String,
    /// Content.
    pub text: String,
}

impl Source {
    /// A source for planted input.
    #[must_use]
    pub fn new(path: &str, text: &str) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
        }
    }

    /// Whether it is Rust.
    #[must_use]
    pub fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether it is test or benchmark code as a whole.
    #[must_use]
    pub fn is_test(&self) -> bool {
        let in_test_dir = self
            .path
            .split('/')
            .any(|part| part == "tests" || part == "benches");
        let is_shared =
            self.path.starts_with("tests/src/") || self.path.starts_with("tests/style/src/");
        (in_test_dir && !is_shared) || self.path.ends_with("/tests.rs")
    }

    /// Whether it lies below one of these directories.
    #[must_use]
    pub fn is_below(&self, dirs: &[&str]) -> bool {
        dirs.iter().any(|dir| self.path.starts_with(dir))
    }
}

/// Every text file below `root`, in order of path. Hidden directories and build output are left
/// out, `.ci` is not.
///
/// # Errors
/// When a directory or a file cannot be read.
pub fn read_sources(root: &Path) -> io::Result<Vec<Source>> {
    let mut found = Vec::new();
    walk(root, "", &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(dir: &Path, prefix: &str, found: &mut Vec<Source>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = format!("{prefix}{name}");
        let kind = entry.file_type()?;
        if kind.is_dir() && is_wanted_dir(&name) {
            walk(&entry.path(), &format!("{path}/"), found)?;
        } else if kind.is_file() && is_wanted_file(&path) {
            let text = String::from_utf8_lossy(&fs::read(entry.path())?).into_owned();
            found.push(Source { path, text });
        }
    }
    Ok(())
}

fn is_wanted_dir(name: &str) -> bool {
    name == ".ci" || !(name.starts_with('.') || SKIPPED_DIRS.contains(&name))
}

fn is_wanted_file(path: &str) -> bool {
    let is_script = path == "test" || path == ".ci/run" || path.starts_with("LICENSE");
    is_script || TEXT.iter().any(|ending| path.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{env, process};

    #[test]
    fn reads_text_and_leaves_build_output_out() {
        let dir = env::temp_dir().join(format!("ringmark-style-{}", process::id()));
        fs::create_dir(&dir).unwrap();
        for sub in ["src", "target", ".git"] {
            fs::create_dir(dir.join(sub)).unwrap();
            fs::write(dir.join(sub).join("a.rs"), "fn a() {}").unwrap();
        }
        fs::write(dir.join("src/a.bin"), [0, 159]).unwrap();
        let paths: Vec<_> = read_sources(&dir)
            .unwrap()
            .into_iter()
            .map(|s| s.path)
            .collect();
        fs::remove_dir_all(&dir).unwrap();
        assert_eq!(paths, ["src/a.rs"]);
    }

    #[test]
    fn test_code_is_known_by_its_place() {
        assert!(Source::new("ring/tests/loom_turn.rs", "").is_test());
        assert!(Source::new("tests/kill.rs", "").is_test());
        assert!(!Source::new("tests/src/process.rs", "").is_test());
        assert!(!Source::new("ring/src/turn.rs", "").is_test());
    }
}
