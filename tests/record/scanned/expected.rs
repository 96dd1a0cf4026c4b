//! The rows that the lines of `cat --json` make, by a few lines of their own: nothing of the decoder's.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

/// What is compared of a row: session, ring, kind, name, start, duration, truncated, arguments.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shown {
    place: (String, String),
    kind: String,
    name: String,
    times: (Option<u64>, Option<u64>),
    truncated: bool,
    args: Option<String>,
}

/// What `cat` shows.
#[derive(Default)]
pub(crate) struct Expected {
    /// Sorted.
    pub(crate) rows: Vec<Shown>,
    /// Events that were lost.
    pub(crate) lost: u64,
    /// Spans over several records among the rows.
    pub(crate) entered: usize,
}

impl Shown {
    pub(crate) fn of_row(row: &BTreeMap<String, String>) -> Self {
        let args = match (&row["kind"][..], &row["args"][..]) {
            ("call", _) => None,
            (_, "") => Some("{}".to_owned()),
            (_, args) => {
                let args: Value = serde_json::from_str(args).expect("JSON");
                Some(args.to_string())
            }
        };
        Self {
            place: (row["session"].clone(), row["ring"].clone()),
            kind: row["kind"].clone(),
            name: row["name"].clone(),
            times: (row["ts_ns"].parse().ok(), row["dur_ns"].parse().ok()),
            truncated: row["truncated"] == "true",
            args,
        }
    }

    /// Whether it is the end of a span of which nothing else is here.
    pub(crate) fn is_end(&self) -> bool {
        self.truncated && self.name.is_empty()
    }

    pub(crate) fn is_truncated(&self) -> bool {
        self.truncated
    }
}

/// An open call: name, start, and whether records of its thread were lost since.
type Open = (String, u64, bool);

impl Expected {
    /// The rows of these lines, chosen from `from` on, in ns since the session's start.
    pub(crate) fn of(lines: &[Value], from: u64) -> Self {
        let mut expected = Self::default();
        let mut open: HashMap<(String, u64), Vec<Open>> = HashMap::new();
        for line in lines {
            let text = |key: &str| line[key].as_str().unwrap_or_default().to_owned();
            let key = (text("session"), line["tid"].as_u64().unwrap_or(0));
            let kind = text("kind");
            match &kind[..] {
                "lost" => {
                    expected.lost += line["count"].as_u64().expect("a count");
                    let threads = open.iter_mut();
                    let hit =
                        threads.filter(|(of, _)| of.0 == key.0 && (key.1 == 0 || of.1 == key.1));
                    hit.flat_map(|(_, calls)| calls)
                        .for_each(|call| call.2 = true);
                }
                "function_entry" => {
                    let ts = text("ts_ns").parse().expect("a time");
                    open.entry(key).or_default().push((text("name"), ts, false));
                }
                "function_exit" => expected.exit(line, open.entry(key).or_default()),
                "session_end" | "open_span" => {}
                _ => expected.event(line, kind, from),
            }
        }
        expected.rows.sort();
        expected
    }

    fn event(&mut self, line: &Value, kind: String, from: u64) {
        let dur = line["dur_ns"].as_u64();
        let end: u64 = line["ts_ns"]
            .as_str()
            .expect("a time")
            .parse()
            .expect("digits");
        let is_entered = !line.get("busy_ns").is_none_or(Value::is_null);
        self.entered += usize::from(is_entered);
        let start_ns = line["t_ns"].as_u64().expect("a time") - dur.unwrap_or(0);
        let truncated = is_entered && start_ns < from;
        let known = |ns| Some(ns).filter(|_| !truncated);
        self.rows.push(Shown {
            place: place(line),
            kind,
            name: line["name"].as_str().unwrap_or_default().to_owned(),
            times: (known(end - dur.unwrap_or(0)), dur.and_then(known)),
            truncated,
            args: Some(line["args"].to_string()),
        });
    }

    /// The end of a call, and of those in it that have none.
    fn exit(&mut self, line: &Value, open: &mut Vec<Open>) {
        let name = line["name"].as_str().expect("a name");
        let end: u64 = line["ts_ns"]
            .as_str()
            .expect("a time")
            .parse()
            .expect("digits");
        let call = |name: &str, start: Option<u64>, dur| Shown {
            place: place(line),
            kind: "call".to_owned(),
            name: name.to_owned(),
            times: (start, dur),
            truncated: start.is_none(),
            args: None,
        };
        let Some(at) = open.iter().rposition(|call| call.0 == name) else {
            return self.rows.push(call(name, None, None));
        };
        for (number, (name, start, is_unsure)) in open.split_off(at).into_iter().enumerate() {
            let dur = Some(end - start).filter(|_| number == 0 || !is_unsure);
            self.rows.push(call(&name, Some(start), dur));
        }
    }
}

fn place(line: &Value) -> (String, String) {
    let ring = line["ring"].as_u64().expect("a ring").to_string();
    (
        line["session"].as_str().expect("a session").to_owned(),
        ring,
    )
}
