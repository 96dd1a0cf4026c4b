//! Where the shared object of the function tracer is, and what puts it there.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ringmark_console::Failure;
use ringmark_console::shell::quoted;

/// File name of the shared object.
pub(crate) const LIBRARY: &str = "libringmark_functions.so";

/// The package that this program was built from. Cargo builds the shared object from it, too. A release, which has the
/// shared object, does not say where it was built.
const MANIFEST: &str = match option_env!("RINGMARK_COMMIT") {
    Some(_) => "",
    None => concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
};

/// Finds the shared object: every way to trace functions begins here.
///
/// # Errors
/// It is not there: where it was looked for, and what to do. Or no functions are traced on this processor.
pub(crate) fn library() -> Result<PathBuf, Failure> {
    if let Some(refusal) = refusal(env::consts::ARCH) {
        return Err(Failure::no_target(refusal));
    }
    let given = env::var_os("RINGMARK_LIB").filter(|path| !path.is_empty());
    let own = env::current_exe().unwrap_or_default();
    let looked = match &given {
        Some(given) => vec![Path::new(given).join(LIBRARY), given.into()],
        None => places(&own),
    };
    if let Some(found) = looked.iter().find(|path| path.is_file()) {
        return std::fs::canonicalize(found)
            .map_err(|error| Failure::no_target(format!("{}: {error}", found.display())));
    }
    let looked: Vec<_> = looked
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(Failure::no_target(format!(
        "{LIBRARY} is not there, looked for {}; {}",
        looked.join(", "),
        advice(given, &own, Path::new(MANIFEST))
    )))
}

/// Why no functions are traced on this processor; `None`: they are.
fn refusal(processor: &str) -> Option<String> {
    (processor != "x86_64").then(|| {
        format!(
            "functions can be traced on x86-64 only, this is {processor}: 'ringmark record' takes the events of a program \
             here, and 'ringmark profile' shows which functions its time goes to"
        )
    })
}

/// Where it is looked for, of a program at this path.
fn places(own: &Path) -> Vec<PathBuf> {
    let Some(bin) = own.parent() else {
        return Vec::new();
    };
    let installed = folder(bin);
    vec![
        installed.join(LIBRARY),
        installed.join("release").join(LIBRARY),
        bin.join(LIBRARY),
    ]
}

/// The folder of the shared object, of a program in this one.
fn folder(bin: &Path) -> PathBuf {
    bin.parent().unwrap_or(Path::new("..")).join("lib/ringmark")
}

/// What to do about a shared object that is not there.
fn advice(given: Option<OsString>, own: &Path, manifest: &Path) -> String {
    match own.parent() {
        _ if given.is_some() => "RINGMARK_LIB names them: correct it, or unset it".into(),
        Some(bin) if manifest.is_file() => format!(
            "this builds it: cargo build --release --lib -p ringmark-cli -p ringmark-functions --features shared-object \
             --manifest-path {} --target-dir {}",
            quoted(manifest),
            quoted(&folder(bin))
        ),
        _ => "'./install PREFIX' in Ringmark's source installs it with the command".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_processor_is_refused_with_what_works_there() {
        let text = refusal("aarch64").expect("a refusal");
        assert!(text.contains("x86-64 only, this is aarch64"), "{text}");
        assert!(text.contains("'ringmark record'"), "{text}");
        assert_eq!(refusal("x86_64"), None);
    }

    #[test]
    fn the_advice_fits_what_is_there() {
        let own = Path::new("/opt/x y/bin/ringmark");
        let advice = |given: Option<&str>, manifest| {
            super::advice(given.map(Into::into), own, Path::new(manifest))
        };
        assert!(advice(Some("/nowhere"), MANIFEST).contains("unset it"));
        assert!(advice(None, "/nowhere/Cargo.toml").contains("./install PREFIX"));
        let built = advice(None, MANIFEST);
        assert!(
            built.contains("cargo build --release --lib -p ringmark-cli"),
            "{built}"
        );
        assert!(
            built.ends_with("--target-dir '/opt/x y/lib/ringmark'"),
            "{built}"
        );
    }

    #[test]
    fn what_the_advice_builds_is_found() {
        let places = places(Path::new("/opt/bin/ringmark"));
        let built = Path::new("/opt/lib/ringmark/release").join(LIBRARY);
        assert!(places.contains(&built), "{places:?}");
    }
}
