//! Hands the rules of a policy to sessions. A process may be slow to answer, so a thread of its own asks.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::Uuid;

use crate::error::ReaderError;
use crate::sessions::control;
use crate::sessions::session::{Access, Session};
use crate::stream::policy::RuleOrder;

/// How long a process has for its answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
/// How long one that did not answer is left alone.
const TRY_AGAIN: Duration = Duration::from_secs(5);

/// What became of an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RuleOutcome {
    pub(super) session: Uuid,
    /// Why the rules are not in force; `None`: they are.
    pub(super) refused: Option<String>,
}

/// The thread that asks. It ends after this is dropped.
pub(super) struct RuleThread {
    orders: Sender<RuleOrder>,
    outcomes: Receiver<RuleOutcome>,
}

impl RuleThread {
    /// Starts the thread; `None`: there can be none now.
    pub(super) fn start() -> Option<Self> {
        let (orders, to_do) = channel();
        let (tell, outcomes) = channel();
        let thread = thread::Builder::new().name("policy".to_owned());
        let _ = thread.spawn(move || serve(&to_do, &tell)).ok()?;
        Some(Self { orders, outcomes })
    }

    /// Has these rules handed over.
    pub(super) fn order(&self, order: RuleOrder) {
        let _ = self.orders.send(order);
    }

    /// What became of orders since the last call.
    pub(super) fn outcomes(&self) -> Vec<RuleOutcome> {
        self.outcomes.try_iter().collect()
    }
}

/// Hands rules over until the streamer is gone. The last order for a session counts.
fn serve(to_do: &Receiver<RuleOrder>, tell: &Sender<RuleOutcome>) {
    let mut waiting: HashMap<Uuid, (Instant, RuleOrder)> = HashMap::new();
    loop {
        let next = waiting.values().map(|(at, _)| *at).min();
        let wait = next.map_or(TRY_AGAIN, |at| at.saturating_duration_since(Instant::now()));
        match to_do.recv_timeout(wait) {
            Ok(order) => {
                waiting.insert(order.session, (Instant::now(), order));
                continue;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        let now = Instant::now();
        waiting.retain(|session, (at, order)| {
            if *at > now {
                return true;
            }
            let done = hand_over(order);
            let refused = match &done {
                Done::Holds | Done::Gone => None,
                Done::NotNow(why) | Done::Never(why) => Some(why.clone()),
            };
            let _ = tell.send(RuleOutcome {
                session: *session,
                refused,
            });
            *at = Instant::now() + TRY_AGAIN;
            matches!(done, Done::NotNow(_))
        });
    }
}

/// How an order went.
enum Done {
    Holds,
    /// The session has ended: no event of it comes any more.
    Gone,
    /// It may go better later.
    NotNow(String),
    Never(String),
}

fn hand_over(order: &RuleOrder) -> Done {
    let session = match Session::open(&order.ring_file, Access::Control) {
        Ok(session) if session.ended() => return Done::Gone,
        Ok(session) => session,
        Err(error) if order.ring_file.exists() => return Done::NotNow(error.to_string()),
        Err(_) => return Done::Gone,
    };
    let has_control = session.header().mailbox_offset != 0;
    match control::request(&session, &order.request, ANSWER_WITHIN) {
        Ok(answer) if answer.status == 0 => Done::Holds,
        Ok(answer) => {
            let text = answer.text.escape_debug();
            Done::Never(format!("pid {}: {text}", session.pid()))
        }
        Err(_) if session.ended() => Done::Gone,
        Err(error @ (ReaderError::Control { .. } | ReaderError::Unfinished { .. }))
            if has_control =>
        {
            Done::NotNow(error.to_string())
        }
        Err(error) => Done::Never(error.to_string()),
    }
}
