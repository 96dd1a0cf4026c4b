//! Writes the folders.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ringmark_decoder::{Event, Lost, Output, Page, Session, SmallKeys};
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
    /// By address of the type, which stays where it is: the number of its class.
    numbers: SmallKeys<usize, usize>,
    classes: Vec<EventClass>,
}

/// The traces of a dump.
struct Traces {
    folder: PathBuf,
    /// In the order in which they were met; and the place of each.
    sessions: Vec<Trace>,
    of_session: HashMap<Uuid, usize>,
    streams: Vec<Rings>,
    /// By session and ring, the place of the stream; 0 is no ring.
    of_ring: SmallKeys<(usize, u64), usize>,
}

/// The stream of a ring.
struct Rings {
    stream: Stream,
    /// Place of its session.
    session: usize,
    /// The page that the latest event came from, by address.
    page: usize,
}

/// The latest time that readers of CTF take, in ns since 1970: they count in 64 bits with a sign. One event
/// beyond it makes babeltrace2 refuse the whole trace.
const LATEST_NS: u64 = i64::MAX as u64;

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
        sessions: Vec::new(),
        of_session: HashMap::new(),
        streams: Vec::new(),
        of_ring: SmallKeys::default(),
    };
    let (mut number, mut shown, mut too_late) = (0, Counts::default(), 0);
    let is_all = plan.cut.filter.is_empty();
    for output in plan.dump.events_apart().flatten() {
        number += 1;
        if number % PROGRESS_EVERY == 0 {
            progress(number, plan.items);
        }
        if !is_all && !plan.cut.filter.passes_item(&output) {
            continue;
        }
        let is_short = |ns| ns < plan.cut.min_ns;
        match &output {
            Output::Event(event)
                if plan.cut.min_ns > 0 && event.duration_ns().is_some_and(is_short) => {}
            Output::Event(event) if event.wall_ns() > LATEST_NS => too_late += 1,
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
    let mut left_out = vec![
        ("spans that are open at the end", open),
        (
            "events after 2262-04-11, which readers of CTF refuse",
            too_late,
        ),
    ];
    left_out.retain(|(_, count)| *count > 0);
    Ok(Written {
        bytes,
        shown,
        left_out,
        unplaced: 0,
    })
}

impl Trace {
    /// Adds the class of an event's type; returns its number.
    #[cold]
    fn describe(&mut self, event: &Event<'_>) -> usize {
        let number = self.classes.len();
        let class = EventClass::of(event.ty);
        let name = match event.function() {
            Some(function) => [&function.name, &b":"[..], event.ty.kind().as_bytes()].concat(),
            None => event.ty.name.clone(),
        };
        let text = metadata::class(number as u32, &name, &class);
        self.metadata.push_str(&text);
        self.classes.push(class);
        let address = std::ptr::from_ref(event.ty) as usize;
        self.numbers.insert(address, number);
        number
    }
}

impl Traces {
    fn event(&mut self, event: &Event<'_>) -> io::Result<()> {
        let ring = self.ring(event.session, event.ring().0, event.page)?;
        let (rings, page) = (&mut self.streams[ring], std::ptr::from_ref(event.page));
        if std::mem::replace(&mut rings.page, page as usize) != page as usize {
            rings.stream.flush()?;
        }
        let trace = &mut self.sessions[rings.session];
        let address = std::ptr::from_ref(event.ty) as usize;
        let number = match trace.numbers.get(&address) {
            Some(number) => *number,
            None => trace.describe(event),
        };
        let class = &trace.classes[number];
        let stream = &mut rings.stream;
        stream.event(number as u32, event.wall_ns(), |out| {
            class.payload(event, out);
        });
        Ok(())
    }

    fn lost(&mut self, lost: &Lost<'_>) -> io::Result<()> {
        let ring = lost.ring.map_or(0, |ring| ring.0);
        let ring = self.ring(lost.session, ring, lost.page)?;
        let at_ns = lost.session.clock.wall_ns(lost.t_ns);
        self.streams[ring].stream.lose(lost.loss.count, at_ns)
    }

    /// The place of the stream of a ring. It is made the first time, with the thread of this page.
    #[inline]
    fn ring<'p>(
        &mut self,
        session: &Session,
        ring: u64,
        page: impl Into<Option<&'p Page>>,
    ) -> io::Result<usize> {
        let key = (std::ptr::from_ref(session) as usize, ring);
        match self.of_ring.get(&key) {
            Some(place) => Ok(*place),
            None => self.add_ring(session, key, page.into()),
        }
    }

    #[cold]
    fn add_ring(
        &mut self,
        session: &Session,
        key: (usize, u64),
        page: Option<&Page>,
    ) -> io::Result<usize> {
        let of_session = self.trace(session)?;
        let tid = page.map_or(0, |page| page.header.tid);
        let name = page.map_or(&b""[..], |page| page.thread_name());
        let folder = &self.sessions[of_session].folder;
        let path = folder.join(format!("thread_{tid}_{}", key.1));
        self.of_ring.insert(key, self.streams.len());
        self.streams.push(Rings {
            stream: Stream::new(path, session.uuid, tid, name),
            session: of_session,
            page: 0,
        });
        Ok(self.streams.len() - 1)
    }

    /// The place of the trace of a session. Its folder is made the first time.
    fn trace(&mut self, session: &Session) -> io::Result<usize> {
        if let Some(place) = self.of_session.get(&session.uuid) {
            return Ok(*place);
        }
        let folder = self.folder.join(session.uuid.to_string());
        fs::create_dir(&folder)?;
        self.of_session.insert(session.uuid, self.sessions.len());
        self.sessions.push(Trace {
            folder,
            metadata: metadata::head(session),
            numbers: SmallKeys::default(),
            classes: Vec::new(),
        });
        Ok(self.sessions.len() - 1)
    }

    /// Writes what is left; returns the bytes of all files.
    fn finish(mut self) -> io::Result<u64> {
        let mut bytes = 0;
        for rings in &mut self.streams {
            rings.stream.finish()?;
            bytes += rings.stream.bytes;
        }
        for trace in &self.sessions {
            fs::write(trace.folder.join("metadata"), &trace.metadata)?;
            bytes += trace.metadata.len() as u64;
        }
        Ok(bytes)
    }
}
