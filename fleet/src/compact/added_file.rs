//! A file of a table: what a log says of it.

use serde_json::{Value, json};

use super::time::{date_and_hour, hour_of};

/// A file of a table, as `add` names it.
#[derive(Debug, Clone, PartialEq)]
pub struct AddedFile {
    /// Its path below the table.
    pub path: String,
    /// Day of its rows, UTC.
    pub date: String,
    /// Hour of that day.
    pub hour: u32,
    /// Its size.
    pub bytes: u64,
    /// Number of its rows.
    pub rows: u64,
    /// Earliest and latest start, ns since 1970; `None`: none is known.
    pub times: Option<(i64, i64)>,
    /// Rows without a known start.
    pub without_time: u64,
    /// When it was added, in ms since 1970; 0: it was not yet.
    pub added_ms: u64,
}

impl AddedFile {
    /// A file that will be written, of this hour since 1970.
    pub(crate) fn of_hour(hour: u64) -> Self {
        let (date, of_day) = date_and_hour(hour);
        Self::of_hour_of(&date, of_day)
    }

    /// The same, of this hour of a day.
    pub(crate) fn of_hour_of(date: &str, hour: u32) -> Self {
        Self {
            path: String::new(),
            date: date.to_owned(),
            hour,
            bytes: 0,
            rows: 0,
            times: None,
            without_time: 0,
            added_ms: 0,
        }
    }

    /// Counts a row.
    pub(crate) fn count(&mut self, start_ns: Option<u64>) {
        self.rows += 1;
        let Some(ns) = start_ns.and_then(|ns| i64::try_from(ns).ok()) else {
            self.without_time += 1;
            return;
        };
        let (first, last) = self.times.unwrap_or((ns, ns));
        self.times = Some((first.min(ns), last.max(ns)));
    }

    pub(crate) fn action(&self, now_ms: u64, is_change: bool) -> Value {
        let mut stats = json!({
            "numRecords": self.rows,
            "nullCount": {"ts_ns": self.without_time},
        });
        if let Some((first, last)) = self.times {
            stats["minValues"] = json!({"ts_ns": first});
            stats["maxValues"] = json!({"ts_ns": last});
        }
        json!({"add": {
            "path": self.path,
            "partitionValues": {"date": self.date, "hour": self.hour.to_string()},
            "size": self.bytes,
            "modificationTime": now_ms,
            "dataChange": is_change,
            "stats": stats.to_string(),
        }})
    }

    /// The action that takes it out of its table. `is_change`: its rows are not in another file.
    pub(crate) fn removal(&self, now_ms: u64, is_change: bool) -> Value {
        json!({"remove": {
            "path": self.path,
            "deletionTimestamp": now_ms,
            "dataChange": is_change,
            "extendedFileMetadata": true,
            "partitionValues": {"date": self.date, "hour": self.hour.to_string()},
            "size": self.bytes,
        }})
    }

    /// What an action says; `None`: it says something else, leaves out rows, or names a place outside the table.
    pub(crate) fn of_action(add: &Value) -> Option<Self> {
        let stats: Value = serde_json::from_str(add["stats"].as_str()?).ok()?;
        let at = |which: &str| stats[which]["ts_ns"].as_i64();
        if !add["deletionVector"].is_null() {
            return None;
        }
        let (path, date) = (add["path"].as_str()?, &add["partitionValues"]["date"]);
        let (date, hour) = (date.as_str()?, add["partitionValues"]["hour"].as_str()?);
        let hour: u32 = hour.parse().ok()?;
        let is_inside = path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !is_inside
            || date_and_hour(hour_of(&format!("{date}-{hour:02}"))?) != (date.to_owned(), hour)
        {
            return None;
        }
        Some(Self {
            path: path.to_owned(),
            date: date.to_owned(),
            hour,
            bytes: add["size"].as_u64()?,
            rows: stats["numRecords"].as_u64()?,
            times: at("minValues").zip(at("maxValues")),
            without_time: stats["nullCount"]["ts_ns"].as_u64().unwrap_or(0),
            added_ms: add["modificationTime"].as_u64().unwrap_or(0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_action_names_no_place_outside_its_table() {
        let of = |path: &str, date: &str| {
            let mut file = AddedFile::of_hour_of(date, 16);
            file.path = path.to_owned();
            AddedFile::of_action(&file.action(1, true)["add"])
        };
        assert!(of("date=2026-11-24/hour=16/a.parquet", "2026-11-24").is_some());
        for path in ["../a.parquet", "/a.parquet", "./a.parquet", "a/../../b", ""] {
            assert_eq!(of(path, "2026-11-24"), None, "{path}");
        }
        for date in ["x/../../../evil", "2026-11-31", "2026-11-24/x", ""] {
            assert_eq!(of("a.parquet", date), None, "{date}");
        }
    }
}
