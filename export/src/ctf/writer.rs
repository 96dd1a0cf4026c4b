//! Writes the folders.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ringmark_decoder::{Event, Lost, Output, Session};
use ringmark_format::Uuid;

use super::event_class::EventClass;
use super::metadata;
use super::stream::Stream;
use crate::timeline::plan::{Counts, Plan};
use crate::timeline::play::Written;

/// Records between two words about the progress.
const PROGRESS_EVERY: u64 = 8192;

/// The trace of one session.
struct Trace {
    folder: PathBuf,
    metadata: String,
    /// By address of the type, which stays where it is: its number and its class.
    classes: HashMap<usize, (u32, EventClass)>,
}

/// The traces of a dump.
struct Traces {
    folder: PathBuf,
    sessions: HashMap<Uuid, Trace>,
    /// By session and ring; 0 is no ring.
    streams: HashMap<(Uuid, u64), Stream>,
    /// The page that the latest event of each stream came from, by address.
    pages: HashMap<(Uuid, u64), usize>,
}

/// Writes the events of a plan below `folder`, which must not be there.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write(
    plan: &Plan<'_>,
    folder: &Path,
    mut progress: impl FnMut(u64, u64),
) -> io::Result<Written> {
    fs::create_dir(folder)?;
    let mut traces = Traces {
        folder: folder.to_owned(),
        sessions: HashMap::new(),
        streams: HashMap::new(),
        pages: HashMap::new(),
    };
    let (mut number, mut shown) = (0, Counts::default());
    for output in plan.dump.events() {
        number += 1;
        if number % PROGRESS_EVERY == 0 {
            progress(number, plan.items);
        }
        if !plan.cut.filter.passes_item(&output) {
            continue;
        }
        match &output {
            Output::Event(event) if event.duration_ns().is_some_and(|ns| ns < plan.cut.min_ns) => {}
            Output::Event(event) => {
                shown.instants += 1;
                traces.event(event)?;
            }
            Output::Lost(lost) => {
                shown.losses += 1;
                traces.lost(lost)?;
            }
        }
    }
    let bytes = traces.finish()?;
    let open = plan.open.iter();
    let open = open
        .map(|thread| thread.spans.len() as u64 + thread.deeper)
        .sum();
    let mut left_out = vec![("spans that are open at the end", open)];
    left_out.retain(|(_, count)| *count > 0);
    Ok(Written {
        bytes,
        shown,
        left_out,
    })
}

impl Traces {
    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let key = (event.session.uuid, event.ring().0);
        let page = std::ptr::from_ref(event.page) as usize;
        if self.pages.insert(key, page) != Some(page)
            && let Some(stream) = self.streams.get_mut(&key)
        {
            stream.flush()?;
        }
        self.trace(event.session)?;
        let Some(trace) = self.sessions.get_mut(&key.0) else {
            return Ok(());
        };
        let folder = &trace.folder;
        let stream = self.streams.entry(key).or_insert_with(|| {
            let path = folder.join(format!("thread_{}_{}", event.tid(), key.1));
            Stream::new(path, key.0, event.tid(), event.comm())
        });
        let number = trace.classes.len() as u32;
        let address = std::ptr::from_ref(event.ty) as usize;
        let metadata = &mut trace.metadata;
        let (number, class) = trace.classes.entry(address).or_insert_with(|| {
            let class = EventClass::of(event.ty);
            let name = match event.function() {
                Some(function) => [&function.name, &b":"[..], event.ty.kind().as_bytes()].concat(),
                None => event.ty.name.clone(),
            };
            metadata.push_str(&metadata::class(number, &name, &class));
            (number, class)
        });
        stream.event(*number, event.wall_ns(), |out| class.payload(event, out));
        Ok(())
    }

    fn lost(&mut self, lost: &Lost<'_>) -> io::Result<()> {
        self.trace(lost.session)?;
        let key = (lost.session.uuid, lost.ring.map_or(0, |ring| ring.0));
        let tid = lost.page.map_or(0, |page| page.header.tid);
        let name = lost.page.map_or(&b""[..], |page| page.thread_name());
        let Some(trace) = self.sessions.get(&key.0) else {
            return Ok(());
        };
        let stream = self.streams.entry(key).or_insert_with(|| {
            let path = trace.folder.join(format!("thread_{tid}_{}", key.1));
            Stream::new(path, key.0, tid, name)
        });
        let at_ns = lost.session.clock.wall_ns(lost.t_ns);
        stream.lose(lost.loss.count, at_ns)
    }

    /// Makes the folder of a session.
    fn trace(&mut self, session: &Session) -> io::Result<()> {
        if self.sessions.contains_key(&session.uuid) {
            return Ok(());
        }
        let folder = self.folder.join(session.uuid.to_string());
        fs::create_dir(&folder)?;
        let trace = Trace {
            folder,
            metadata: metadata::head(session),
            classes: HashMap::new(),
        };
        self.sessions.insert(session.uuid, trace);
        Ok(())
    }

    /// Writes what is left; returns the bytes of all files.
    fn finish(mut self) -> io::Result<u64> {
        let mut bytes = 0;
        for stream in self.streams.values_mut() {
            stream.finish()?;
            bytes += stream.bytes;
        }
        for trace in self.sessions.values() {
            fs::write(trace.folder.join("metadata"), &trace.metadata)?;
            bytes += trace.metadata.len() as u64;
        }
        Ok(bytes)
    }
}
