//! Modules of a crate by the paths of their files.

/// Path of a module from the root of its crate, the root's own being empty.
pub type Module = Vec<String>;

/// The module by whose path a `#[path]` leads to a file or directory, seen from directory `dir`.
#[must_use]
pub fn at_path(dir: &str, path: &str) -> Module {
    let mut parts = Vec::new();
    for part in dir.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    of_file(&parts.join("/"))
}

/// The module of a file, by its path below `src/`.
#[must_use]
pub fn of_file(path: &str) -> Module {
    let path = path.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path.is_empty() || path == "lib" || path == "main" {
        return Module::new();
    }
    path.split('/').map(str::to_owned).collect()
}

/// The module `name` in `module`.
#[must_use]
pub fn joined(module: &Module, name: &str) -> Module {
    let name = [name.to_owned()];
    module.iter().chain(&name).cloned().collect()
}
