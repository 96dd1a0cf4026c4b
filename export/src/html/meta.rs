//! The JSON of the page's data: everything there is little of.

use std::collections::BTreeMap;

use ringmark_decoder::escape;

use super::about::About;
use super::rows::{Kind, Loss, Slice, Track, does};
use crate::texts::Texts;
use crate::timeline::plan::Thread;
use crate::timeline::processes::{Process, printable};

/// A track: process, its thread if there is one, what it shows, and a name of its own.
pub(super) type Key = (usize, Option<u32>, Kind, Vec<u8>);

/// What the JSON is made of.
pub(super) struct Meta<'m, 'a> {
    pub(super) about: &'m About,
    /// A line about slices of which it is not known what is around them.
    pub(super) unplaced: Option<String>,
    pub(super) processes: &'m BTreeMap<usize, Process>,
    pub(super) threads: &'m BTreeMap<u32, Thread<'a>>,
    pub(super) tracks: &'m BTreeMap<Key, Track>,
    /// What threads did, by their numbers.
    pub(super) states: &'m BTreeMap<u32, Vec<Slice>>,
    pub(super) losses: &'m [Loss],
    pub(super) names: &'m Texts,
    /// Wall times in ns.
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
}

impl Meta<'_, '_> {
    /// One object. `first` is text: it is larger than what JSON's readers keep exact. Times of losses
    /// are in ns since `first`.
    pub(super) fn to_json(&self) -> Vec<u8> {
        let mut out = b"{\"version\":1,\"title\":".to_vec();
        text(self.about.title.as_bytes(), &mut out);
        out.extend_from_slice(b",\"part\":");
        text(self.about.part.as_bytes(), &mut out);
        let length = self.last_ns - self.first_ns;
        out.extend_from_slice(
            format!(",\"first\":\"{}\",\"length\":{length}", self.first_ns).as_bytes(),
        );
        let covers = self.about.covers.iter().chain(&self.unplaced).cloned();
        for (key, lines) in [
            ("ends", &self.about.ends),
            ("whose", &self.about.whose),
            ("covers", &covers.collect()),
            ("last_words", &self.about.last_words),
        ] {
            out.extend_from_slice(format!(",\"{key}\":").as_bytes());
            list(lines, &mut out, |line, out| text(line.as_bytes(), out));
        }
        let panicked: Vec<_> = self.about.panicked.iter().map(u32::to_string).collect();
        out.extend_from_slice(format!(",\"panicked\":[{}]", panicked.join(",")).as_bytes());
        out.extend_from_slice(b",\"names\":");
        list(self.names.all(), &mut out, text);
        self.push_places(&mut out);
        out.extend_from_slice(b",\"does\":");
        list(does::WORDS, &mut out, |word, out| {
            text(word.as_bytes(), out)
        });
        let threads: Vec<_> = self.states.keys().map(u32::to_string).collect();
        out.extend_from_slice(format!(",\"states\":[{}]", threads.join(",")).as_bytes());
        out.extend_from_slice(b",\"losses\":");
        list(self.losses, &mut out, |loss, out| self.push_loss(loss, out));
        out.push(b'}');
        out
    }

    /// `processes`: number, name, id. `threads`: number, number of the process, name, id. `tracks`:
    /// number of the process, number of the thread or -1, what it shows, rows, 1 if its slices have no
    /// duration, name of the argument that is a counter's value, its unit, 1 if its slices have links.
    fn push_places(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"processes\":");
        list(self.processes, out, |(number, process), out| {
            out.extend_from_slice(format!("[{number},").as_bytes());
            text(&process.name, out);
            out.extend_from_slice(format!(",{}]", process.pid).as_bytes());
        });
        out.extend_from_slice(b",\"threads\":");
        list(self.threads, out, |(number, thread), out| {
            let process = thread.session.process;
            out.extend_from_slice(format!("[{number},{process},").as_bytes());
            text(&printable(thread.name), out);
            out.extend_from_slice(format!(",{}]", thread.tid).as_bytes());
        });
        out.extend_from_slice(b",\"tracks\":");
        list(
            self.tracks,
            out,
            |((process, thread, kind, name), track), out| {
                let thread = thread.map_or(-1, i64::from);
                out.extend_from_slice(format!("[{process},{thread},").as_bytes());
                let words = match name.as_slice() {
                    [] => kind.word().as_bytes().to_vec(),
                    name => printable(name),
                };
                text(&words, out);
                let is_of_events = u8::from(kind.is_of_events());
                let tail = format!(",{},{is_of_events},", track.rows.len());
                out.extend_from_slice(tail.as_bytes());
                text(&track.value, out);
                out.push(b',');
                text(&track.unit, out);
                let has_links = u8::from(kind.has_links());
                out.extend_from_slice(format!(",{has_links}]").as_bytes());
            },
        );
    }

    fn push_loss(&self, loss: &Loss, out: &mut Vec<u8>) {
        let thread = loss.thread.map_or(-1, i64::from);
        let from = loss.from.saturating_sub(self.first_ns);
        let to = loss.to.saturating_sub(self.first_ns);
        let head = format!("[{},{thread},{from},{to},{},", loss.process, loss.events);
        out.extend_from_slice(head.as_bytes());
        text(loss.cause.as_bytes(), out);
        out.push(b']');
    }
}

/// A text that is printable already.
fn text(bytes: &[u8], out: &mut Vec<u8>) {
    escape::json(bytes, out);
}

fn list<T>(
    items: impl IntoIterator<Item = T>,
    out: &mut Vec<u8>,
    mut push: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(b'[');
    for (place, item) in items.into_iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        push(item, out);
    }
    out.push(b']');
}
