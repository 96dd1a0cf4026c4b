//! Names of the objects of a store, and where they lie in a directory that holds them.
//!
//! `raw/v2/DATE-HOUR/COLLECTOR/NUMBER.rms` are segments, `schema/HOST/SESSION/FROM-TO-CRC.rms` is
//! schema. Each is spelled in one way only; whatever is named otherwise is not the store's.

use super::links::{refuse_links_in, refused};
use std::fs;
use std::io;
use std::path::Path;

use ringmark_format::Uuid;

use super::files::directory_name;

/// The object that makes a place a store of objects.
pub const OBJECTS_ID: &str = "ringmark-store.json";
/// Above all segments.
pub const RAW: &str = "raw/v2";
/// Above all schema.
pub const SCHEMA: &str = "schema";
/// Ending of the name of a segment, and of schema.
const ENDING: &str = ".rms";
/// Digits of a segment's number, so that the order of names is that of numbers.
const DIGITS: usize = 12;

/// The name of a segment: `hour` is that of its upload, `YYYY-MM-DD-HH`.
#[must_use]
pub fn raw_object(hour: &str, collector: Uuid, number: u64) -> String {
    format!("{RAW}/{hour}/{collector}/{number:0DIGITS$}{ENDING}")
}

/// The name of schema: the bytes of the stream from `from` to `to`, with this CRC-32.
#[must_use]
pub fn schema_object(host: &str, session: Uuid, (from, to): (u64, u64), crc: u32) -> String {
    let host = directory_name(host);
    format!("{SCHEMA}/{host}/{session}/{from}-{to}-{crc:08x}{ENDING}")
}

/// Whether an object is a segment, by its name.
#[must_use]
pub fn is_raw(name: &str) -> bool {
    raw_hour(name).is_some()
}

/// The hour of a segment's upload, by its name; `None`: it is none.
#[must_use]
pub fn raw_hour(name: &str) -> Option<&str> {
    let rest = name.strip_prefix(RAW)?.strip_prefix('/')?;
    let mut parts = rest.split('/');
    let (hour, collector) = (parts.next()?, parts.next()?);
    let number = parts.next()?.strip_suffix(ENDING)?.parse().ok()?;
    let is_last = parts.next().is_none();
    let collector = uuid(collector)?;
    (is_last && is_hour(hour) && raw_object(hour, collector, number) == name).then_some(hour)
}

/// The session of schema, by its name; `None`: it is none.
#[must_use]
pub fn schema_session(name: &str) -> Option<Uuid> {
    schema_owner(name).map(|(_, session)| session)
}

/// The host, as [`directory_name`] writes it, and the session of schema, by its name; `None`: it is none.
#[must_use]
pub fn schema_owner(name: &str) -> Option<(&str, Uuid)> {
    let rest = name.strip_prefix(SCHEMA)?.strip_prefix('/')?;
    let mut parts = rest.split('/');
    let (host, session) = (parts.next()?, uuid(parts.next()?)?);
    let mut numbers = parts.next()?.strip_suffix(ENDING)?.split('-');
    let mut number = || numbers.next()?.parse::<u64>().ok();
    let range = (number()?, number()?);
    let crc = u32::from_str_radix(numbers.next()?, 16).ok()?;
    let is_one = parts.next().is_none() && schema_object(host, session, range, crc) == name;
    is_one.then_some((host, session))
}

/// A uuid, as it is shown and in no other way.
fn uuid(text: &str) -> Option<Uuid> {
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    let uuid = Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes());
    (uuid.to_string() == text).then_some(uuid)
}

/// Whether a part of a name is an hour: `2026-01-31-23`.
fn is_hour(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        4 | 7 | 10 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 13 && text.bytes().enumerate().all(fits)
}

/// Whether a directory is a store of objects.
#[must_use]
pub fn is_object_store(root: &Path) -> bool {
    root.join(OBJECTS_ID).is_file()
}

/// Names below `prefix`, a directory of the store at `root`, of regular files; sorted.
///
/// # Errors
/// A directory cannot be read, or something is a link: those are not followed.
pub fn objects_below(root: &Path, prefix: &str) -> io::Result<Vec<String>> {
    refuse_links_in(root, &format!("{prefix}/object"))?;
    let (mut found, mut left) = (Vec::new(), vec![prefix.to_owned()]);
    while let Some(directory) = left.pop() {
        let entries = match fs::read_dir(root.join(&directory)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            entries => entries?,
        };
        for entry in entries {
            let (entry, kind) = entry.and_then(|e| Ok((e.file_name(), e.file_type()?)))?;
            // No object has a name that is not text.
            let Some(entry) = entry.to_str() else {
                continue;
            };
            let name = format!("{directory}/{entry}");
            match kind.is_dir() {
                true => left.push(name),
                false if kind.is_file() => found.push(name),
                false if kind.is_symlink() => return Err(refused(&root.join(name))),
                false => {}
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_spelled_in_one_way() {
        let raw = raw_object("2026-11-26-19", Uuid([7; 16]), 41);
        assert!(is_raw(&raw), "{raw}");
        let schema = schema_object("web/1", Uuid([8; 16]), (0, 900), 0xAB);
        assert_eq!(schema_session(&schema), Some(Uuid([8; 16])), "{schema}");
        let others = [
            raw.replace("0041", "041"),
            raw.replace("0041", "+041"),
            raw.replace("-19/", "-x9/"),
            raw.replace("raw/v2/", "raw/v3/"),
            raw.replace("raw/v2/", "raw/v2/../v2/"),
            raw.replace(".rms", ".rmk"),
            raw.replace("07-", "07"),
            format!("{raw}/"),
            format!("/{raw}"),
            "raw/v2".to_owned(),
            String::new(),
        ];
        for other in others {
            assert!(!is_raw(&other), "{other}");
        }
        for (old, new) in [
            ("0-900", "00-900"),
            ("000000ab", "ab"),
            ("web_1", ".."),
            ("900", "x"),
        ] {
            let other = schema.replace(old, new);
            assert_eq!(schema_session(&other), None, "{other}");
        }
        assert_eq!(schema_session(&raw), None);
    }
}
