//! Asks function tracers whether a trigger of theirs wants a snapshot. A process may be slow to
//! answer, so a thread of its own asks.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;
use ringmark_format::tracer_text::{AnswerLine, Request, Verb};

use crate::error::{ReaderError, io_at};
use crate::sessions::control;
use crate::sessions::session::{Access, Session};
use crate::stream::streamed_session::StreamedSession;

/// How often each tracer is asked. The process's helper thread wakes up for it.
const ASK_EVERY: Duration = Duration::from_millis(250);
/// How long a process has for its answer.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);

/// When the pages of sessions in overwrite mode are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Upload {
    /// As they come.
    #[default]
    Always,
    /// What the rings hold, after a process ended badly, when a trigger of its function tracer wants
    /// a snapshot, and after a request of the user.
    OnTrigger,
}

/// The thread that asks. It ends after this is dropped.
pub(super) struct TriggerWatch {
    watched: Sender<Watched>,
    wanted: Receiver<Uuid>,
}

/// A session whose tracers are asked.
struct Watched {
    uuid: Uuid,
    ring_file: PathBuf,
}

impl TriggerWatch {
    /// Starts the thread where sessions wait for triggers.
    ///
    /// # Errors
    /// There can be no thread.
    pub(super) fn if_wanted(upload: Upload) -> Result<Option<Self>, ReaderError> {
        if upload == Upload::Always {
            return Ok(None);
        }
        let (watched, to_watch) = channel();
        let (tell, wanted) = channel();
        let thread = thread::Builder::new().name("triggers".to_owned());
        let started = thread.spawn(move || ask_all(&to_watch, &tell));
        let _ = started.map_err(io_at("start a thread of", Path::new("/proc/self")))?;
        Ok(Some(Self { watched, wanted }))
    }

    /// Has the tracers of this session asked, if it waits for a trigger and answers requests.
    pub(super) fn watch(&self, session: &StreamedSession) {
        let Some(drain) = session.drain().filter(|_| session.is_held()) else {
            return;
        };
        if drain.session().header().mailbox_offset != 0 {
            let ring_file = drain.session().path().to_owned();
            let uuid = session.uuid;
            // Without that thread the other triggers are left.
            let _ = self.watched.send(Watched { uuid, ring_file });
        }
    }

    /// The sessions whose triggers wanted a snapshot since the last call.
    pub(super) fn take_wanted(&self) -> Vec<Uuid> {
        self.wanted.try_iter().collect()
    }
}

/// A session that is open to be asked.
struct Asked {
    uuid: Uuid,
    session: Session,
    /// Bytes of its schema when it answered that it has no function tracer. One that comes later describes its
    /// types, so the process need not be woken up to be asked.
    without_tracer_at: Option<u64>,
}

/// What became of a question.
#[derive(Debug, PartialEq, Eq)]
enum Answered {
    /// A trigger wants a snapshot.
    Wanted,
    /// None does now.
    NotNow,
    /// The process has no function tracer.
    NoTracer,
    /// The session ended.
    Never,
}

/// Asks until the streamer is gone.
fn ask_all(to_watch: &Receiver<Watched>, tell: &Sender<Uuid>) {
    let mut asked: Vec<Asked> = Vec::new();
    let mut next = Instant::now();
    loop {
        match to_watch.recv_timeout(next.saturating_duration_since(Instant::now())) {
            Ok(Watched { uuid, ring_file }) => {
                let session = Session::open(&ring_file, Access::Control).ok();
                asked.extend(session.map(|session| Asked {
                    uuid,
                    session,
                    without_tracer_at: None,
                }));
                continue;
            }
            Err(RecvTimeoutError::Timeout) => next = Instant::now() + ASK_EVERY,
            Err(RecvTimeoutError::Disconnected) => return,
        }
        asked.retain_mut(|asked| match asked.ask() {
            Answered::Wanted => tell.send(asked.uuid).is_ok(),
            Answered::NotNow | Answered::NoTracer => true,
            Answered::Never => false,
        });
    }
}

impl Asked {
    fn ask(&mut self) -> Answered {
        // Before the question: a tracer that comes meanwhile is seen the next time.
        let schema = self.session.ring().schema_log().published();
        if self.without_tracer_at == Some(schema) && !self.session.ended() {
            return Answered::NoTracer;
        }
        let answered = ask(&self.session);
        self.without_tracer_at = (answered == Answered::NoTracer).then_some(schema);
        answered
    }
}

fn ask(session: &Session) -> Answered {
    let request = Request {
        verb: Verb::Snapshot,
        lines: Vec::new(),
    };
    let answer = control::request(session, &request.to_string(), ANSWER_WITHIN);
    match answer {
        Ok(answer) if answer.status != 0 => Answered::NoTracer,
        Ok(answer) => match AnswerLine::all(&answer.text).any(is_snapshot) {
            true => Answered::Wanted,
            false => Answered::NotNow,
        },
        Err(ReaderError::Control { .. } | ReaderError::Unfinished { .. }) if !session.ended() => {
            Answered::NotNow
        }
        Err(_) => Answered::Never,
    }
}

fn is_snapshot(line: AnswerLine<'_>) -> bool {
    matches!(line, AnswerLine::Snapshot(_))
}
