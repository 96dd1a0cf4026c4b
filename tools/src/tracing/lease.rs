//! A start that holds as long as this command renews it: what it enabled is disabled again by the
//! process itself, also when this command is killed.

use std::thread;
use std::time::{Duration, Instant};

use ringmark_format::tracer_text::{AnswerLine, LeaseState, RequestLine, Verb};

use super::budget;
use super::moved_sites::MovedSites;
use super::one_tracer::OneTracer;
use super::requests::Answer;
use super::tracer_session::TracerSession;
use ringmark_console::note;

/// How long a start holds unless it is renewed.
const HOLDS: Duration = Duration::from_secs(3);
/// How often it is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// How often the end of the process and what the caller waits for are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The line of a request that makes its start a lease.
pub(crate) fn line() -> RequestLine<'static> {
    RequestLine::LeaseMs(HOLDS.as_millis() as u64)
}

/// Renews the start of a function tracer until `is_over`, then stops it, unless another command has
/// stopped it, or has started it for good. Modules that the process loads meanwhile get the sites that
/// `moved` finds in them.
///
/// # Errors
/// The process does not answer.
pub(crate) fn hold(
    session: &TracerSession,
    of: &OneTracer,
    moved: &mut MovedSites,
    is_over: impl Fn() -> bool,
) -> anyhow::Result<()> {
    let mut told = 0;
    let held = renew(session, of, moved, is_over, &mut told).and_then(|state| {
        if state == LeaseState::On && !session.has_ended() {
            budget::tell_cost(&session.ask(Verb::Status, &[])?, of);
            let answer = session.ask(Verb::Stop, &of.lines())?;
            budget::tell_given_up(&answer, told);
        }
        Ok(())
    });
    if session.has_ended() {
        // An answer that did not come is no trouble then.
        note(&format!("pid {} has ended", of.pid));
        return Ok(());
    }
    held
}

/// How the start was left. `told`: functions that the budget switched off, as far as they were told.
fn renew(
    session: &TracerSession,
    of: &OneTracer,
    moved: &mut MovedSites,
    is_over: impl Fn() -> bool,
    told: &mut usize,
) -> anyhow::Result<LeaseState> {
    let mut renewed = Instant::now();
    while !is_over() && !session.has_ended() {
        thread::sleep(LOOK_EVERY);
        if renewed.elapsed() < RENEW_EVERY {
            continue;
        }
        renewed = Instant::now();
        let answer = session.ask(Verb::Renew, &of.lines_with(&[line()]))?;
        *told += budget::tell_given_up(&answer, *told);
        moved.look().hand_over(session)?;
        match state(&answer) {
            LeaseState::On => {}
            LeaseState::Off => {
                note(&format!("{} was stopped", of.name()));
                return Ok(LeaseState::Off);
            }
            LeaseState::Detached => {
                note(&format!("{} was started for good", of.name()));
                return Ok(LeaseState::Detached);
            }
        }
    }
    Ok(LeaseState::On)
}

fn state(answer: &Answer) -> LeaseState {
    let state = answer.lines().find_map(|line| match line {
        AnswerLine::State(state) => Some(state),
        _ => None,
    });
    state.unwrap_or(LeaseState::On)
}
