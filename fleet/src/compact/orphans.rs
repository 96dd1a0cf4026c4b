//! Files that no log names: a killed run left them, or one that another was faster than. They go when they are old,
//! by the clock that dates objects and by that of the store.

use std::io::ErrorKind;

use anyhow::Context;
use ringmark_format::Uuid;

use super::log::Log;
use super::objects::Objects;
use super::tables::STATE;
use super::tables::TABLES;
use super::time::hour_of;

/// Deletes those that were put longer than `older_ns` before `now_ns`, and before what the clock says that dated them;
/// returns how many. `writer`: a uuid of chance.
pub(crate) fn delete(
    objects: &dyn Objects,
    (now_ns, older_ns): (u64, u64),
    writer: &str,
) -> anyhow::Result<u64> {
    let mut orphans = Vec::new();
    for table in TABLES {
        let table = format!("tables/{table}");
        let now = Log::new(objects, &table).snapshot()?;
        for name in objects.list(&table).with_context(|| table.clone())? {
            let path = name.strip_prefix(&format!("{table}/")).unwrap_or_default();
            let is_known = now.files.contains_key(path) || now.removed.contains_key(path);
            if is_ours(path) && !is_known {
                orphans.push(name);
            }
        }
    }
    if orphans.is_empty() {
        return Ok(0);
    }
    let (now, mut deleted) = (dated_now(objects, writer)?.min(now_ns), 0);
    for name in orphans {
        let put_ns = match objects.put_ns(&name) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            put => put.with_context(|| name.clone())?,
        };
        if put_ns.saturating_add(older_ns) < now {
            deleted += u64::from(objects.delete(&name).context(name)?);
        }
    }
    Ok(deleted)
}

/// What the clock says that dates objects. An object that stays here is deleted with former state.
fn dated_now(objects: &dyn Objects, writer: &str) -> anyhow::Result<u64> {
    let name = format!("{STATE}/0-{writer}");
    loop {
        let put = objects.put(&name, b"now");
        put.with_context(|| name.clone())?;
        let now = match objects.put_ns(&name) {
            // Another run took it for one that stayed.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            now => now.with_context(|| name.clone())?,
        };
        objects.delete(&name).context(name)?;
        return Ok(now);
    }
}

/// Whether a path below a table is one that we give files: `date=2026-01-31/hour=23/UUID-7.parquet`, with a letter
/// before the number for merged and rewritten files.
pub(super) fn is_ours(path: &str) -> bool {
    let parts = || {
        let (date, rest) = path.strip_prefix("date=")?.split_once("/hour=")?;
        let (hour, file) = rest.split_once('/')?;
        let (writer, number) = file.strip_suffix(".parquet")?.split_at_checked(36)?;
        let number = number.strip_prefix('-')?;
        let number = number.strip_prefix(['m', 'r']).unwrap_or(number);
        let digits: String = writer.chars().filter(|c| *c != '-').collect();
        let uuid = Uuid(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes());
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        let is_hour = hour.len() == 2 && hour_of(&format!("{date}-{hour}")).is_some();
        Some(is_hour && is_number && uuid.to_string() == writer)
    };
    parts() == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_are_named_as_ours_are() {
        let ours = "date=2026-01-31/hour=03/ab09368f-5897-40e1-b114-dec2f84826c3-10.parquet";
        assert!(is_ours(ours));
        for letter in ["-m10", "-r10"] {
            assert!(is_ours(&ours.replace("-10", letter)), "{letter}");
        }
        for (old, new) in [
            ("date=", "day="),
            ("/hour=03", "/hour=3"),
            ("/hour=03", ""),
            ("2026-01", "2026-13"),
            ("-10.", "-x10."),
            ("-10.", "-."),
            ("-10.", "."),
            ("ab09", "AB09"),
            ("ab09", "a/09"),
            ("ab09", "aé9"),
            (".parquet", ".parquet.crc"),
            (".parquet", ""),
        ] {
            let other = ours.replace(old, new);
            assert!(!is_ours(&other), "{other}");
        }
        assert!(!is_ours("_delta_log/00000000000000000000.json") && !is_ours(""));
    }
}
