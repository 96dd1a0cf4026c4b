//! Tracks: processes, their threads, rows of a thread, counters.

use std::collections::HashMap;

use ringmark_decoder::Session;

use super::fields::{counter, packet, process, thread, track};
use super::proto::Message;
use super::sequence::Sequence;
use crate::timeline::plan::{Plan, Thread};
use crate::timeline::processes::{MADE_IDS, Process, printable, processes};
use crate::timeline::viewer::{DEEPEST, Place, Row};

/// A process as it is written.
#[derive(Debug, Clone)]
struct ProcessTrack {
    uuid: u64,
    pid: u32,
}

/// What a track is, but for threads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Row(Place),
    Counter(usize, Vec<u8>),
    LostOfThread(u32),
    LostOfProcess(usize),
}

/// All tracks so far.
#[derive(Debug)]
pub(super) struct Tracks {
    processes: HashMap<usize, ProcessTrack>,
    threads: HashMap<u32, u64>,
    /// Ids of threads as they are written, and the process that each id is of.
    tids: HashMap<u32, u32>,
    of_ids: HashMap<u32, usize>,
    /// Whether it is told what threads did: that names a thread by its id alone.
    has_states: bool,
    /// Tracks of spans over threads, by process and name, then by lane; 0: not yet.
    lasting: HashMap<usize, HashMap<Vec<u8>, Vec<u64>>>,
    others: HashMap<Kind, u64>,
    last: u64,
}

impl Tracks {
    /// The processes and threads of a plan, described on `sequence`.
    pub(super) fn new(plan: &Plan<'_>, sequence: &mut Sequence, out: &mut Vec<u8>) -> Self {
        let mut new = Self {
            processes: HashMap::new(),
            threads: HashMap::new(),
            tids: HashMap::new(),
            of_ids: HashMap::new(),
            has_states: plan
                .dump
                .sessions
                .iter()
                .any(|session| session.has_switches() || session.has_waits()),
            lasting: HashMap::new(),
            others: HashMap::new(),
            last: 0,
        };
        for (number, of) in &processes(plan.dump) {
            new.process(*number, of, sequence, out);
        }
        for (number, thread) in &plan.threads {
            new.thread(*number, thread, sequence, out);
        }
        new
    }

    fn next(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn process(&mut self, number: usize, of: &Process, sequence: &mut Sequence, out: &mut Vec<u8>) {
        let (uuid, pid) = (self.next(), of.pid);
        self.processes.insert(number, ProcessTrack { uuid, pid });
        describe(sequence, out, |new| {
            new.number(track::UUID, uuid);
            new.message(track::PROCESS, |new| {
                new.number(process::PID, pid.into());
                new.text(process::NAME, &of.name);
                for label in &of.labels {
                    new.text(process::LABEL, label);
                }
            });
        });
    }

    fn thread(&mut self, number: u32, of: &Thread<'_>, sequence: &mut Sequence, out: &mut Vec<u8>) {
        let uuid = self.next();
        self.threads.insert(number, uuid);
        let Some(around) = self.processes.get(&of.session.process) else {
            return;
        };
        // A thread whose id is not known gets one that no other has.
        let process = of.session.process;
        let owner = *self.of_ids.entry(of.tid).or_insert(process);
        let is_shared = self.has_states && owner != process;
        let tid = if of.tid == 0 || is_shared {
            MADE_IDS + uuid as u32
        } else {
            of.tid
        };
        self.tids.insert(number, tid);
        let name = printable(of.name);
        describe(sequence, out, |new| {
            new.number(track::UUID, uuid);
            new.number(track::PARENT, around.uuid);
            new.message(track::THREAD, |new| {
                new.number(thread::PID, around.pid.into());
                new.number(thread::TID, tid.into());
                new.text(thread::NAME, &name);
            });
        });
    }

    /// The track of a thread itself.
    pub(super) fn of_thread(&self, number: u32) -> u64 {
        self.threads.get(&number).copied().unwrap_or(0)
    }

    /// The id of a thread, as it is written.
    pub(super) fn tid(&self, number: u32) -> Option<u32> {
        self.tids.get(&number).copied()
    }

    /// The track of a process itself.
    pub(super) fn of_process(&self, session: &Session) -> u64 {
        self.processes.get(&session.process).map_or(0, |p| p.uuid)
    }

    /// The track of a row.
    pub(super) fn row(&mut self, place: Place, sequence: &mut Sequence, out: &mut Vec<u8>) -> u64 {
        let parent = self.of_thread(place.thread);
        let deeper;
        let name: &[u8] = match place.row {
            Row::Spans(0) => return parent,
            Row::Spans(_) => b"spans that overlap",
            Row::Calls(0) => b"functions",
            Row::Calls(level) => {
                deeper = format!("functions, deeper than {}", level * DEEPEST);
                deeper.as_bytes()
            }
            Row::TimedCalls(_) => b"functions, timed",
            Row::Waits => b"waits for",
        };
        self.other(Kind::Row(place), parent, name, None, sequence, out)
    }

    /// The track of spans over threads that have this name, in the lane of this number.
    pub(super) fn lasting(
        &mut self,
        session: &Session,
        (name, lane): (&[u8], u32),
        sequence: &mut Sequence,
        out: &mut Vec<u8>,
    ) -> u64 {
        let lanes = self.lasting.entry(session.process).or_default();
        let known = lanes.get(name).and_then(|lanes| lanes.get(lane as usize));
        if let Some(uuid) = known.filter(|uuid| **uuid != 0) {
            return *uuid;
        }
        let parent = self.of_process(session);
        let uuid = self.next();
        let lanes = self.lasting.entry(session.process).or_default();
        let lanes = lanes.entry(name.to_vec()).or_default();
        if lanes.len() <= lane as usize {
            lanes.resize(lane as usize + 1, 0);
        }
        lanes[lane as usize] = uuid;
        describe_track((uuid, parent), name, None, sequence, out);
        uuid
    }

    /// The track of a counter of a process.
    pub(super) fn counter(
        &mut self,
        session: &Session,
        (name, unit): (&[u8], &[u8]),
        sequence: &mut Sequence,
        out: &mut Vec<u8>,
    ) -> u64 {
        let kind = Kind::Counter(session.process, name.to_vec());
        let parent = self.of_process(session);
        self.other(kind, parent, name, Some(unit), sequence, out)
    }

    /// The track of the number of events that a thread has lost, or a process as a whole.
    pub(super) fn lost(
        &mut self,
        session: &Session,
        thread: Option<u32>,
        sequence: &mut Sequence,
        out: &mut Vec<u8>,
    ) -> u64 {
        let (kind, parent) = match thread {
            Some(thread) => (Kind::LostOfThread(thread), self.of_thread(thread)),
            None => (
                Kind::LostOfProcess(session.process),
                self.of_process(session),
            ),
        };
        let unit = Some(&b"events"[..]);
        self.other(kind, parent, b"events not here", unit, sequence, out)
    }

    fn other(
        &mut self,
        kind: Kind,
        parent: u64,
        name: &[u8],
        unit: Option<&[u8]>,
        sequence: &mut Sequence,
        out: &mut Vec<u8>,
    ) -> u64 {
        if let Some(uuid) = self.others.get(&kind) {
            return *uuid;
        }
        let uuid = self.next();
        self.others.insert(kind, uuid);
        describe_track((uuid, parent), name, unit, sequence, out);
        uuid
    }
}

/// Describes a track of a parent. `unit`: that of a counter.
fn describe_track(
    (uuid, parent): (u64, u64),
    name: &[u8],
    unit: Option<&[u8]>,
    sequence: &mut Sequence,
    out: &mut Vec<u8>,
) {
    describe(sequence, out, |new| {
        new.number(track::UUID, uuid);
        new.number(track::PARENT, parent);
        new.text(track::NAME, &printable(name));
        if let Some(unit) = unit {
            new.message(track::COUNTER, |new| {
                if !unit.is_empty() {
                    new.text(counter::UNIT_NAME, &printable(unit));
                }
            });
        }
    });
}

fn describe(sequence: &mut Sequence, out: &mut Vec<u8>, write: impl FnOnce(&mut Message<'_>)) {
    sequence.timeless(out, |packet| {
        packet.message(packet::TRACK_DESCRIPTOR, write)
    });
}
