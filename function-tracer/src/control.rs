//! Requests for the function tracers of this process, as text: see `ringmark_format::tracer_text`.
//!
//! A start that names a duration is a lease. Unless it is renewed in time, the patch sites that it
//! enabled are disabled again, so nothing stays on because a tool died.
//!
//! - `requested`: what the lines of a request say together.
//! - `process_tracers`: the tracers of the process, under a lock; `fork_hooks`: forks wait for it.
//! - `answer_texts`, `request_error`: the answers.
//! - `moved_sites`: takes the sites for which the tool has looked. `lease`: ends what was not renewed. `profile_report`: what profile tracers have gathered.
//!
//! The life of a lease:
//!
//! 1. A start with `lease_ms` enables the sites; the tracer's state is *leased*.
//! 2. A renewal in time moves the end. Its answer is the tracer's state, by which the tool learns
//!    that another one has stopped the tracer, or started it without a lease.
//! 3. Without a renewal, the next idle turn of the thread that answers requests stops the tracer. A
//!    profile tracer then writes what it has gathered into the session.

mod answer_texts;
mod fork_hooks;
mod held_start;
mod lease;
mod moved_sites;
mod process_tracers;
mod profile_report;
mod request_error;
mod requested;

use ringmark_format::tracer_text::{AnswerLine, Request, RequestLine, TRACE, Verb, starts};

use crate::arch;
use crate::engine::{Engine, with_engine};
use crate::loader_watch::turns;
use crate::patch::Threads;
use crate::patch::code_objects::CodeObjects;
use crate::record::{self, callbacks::Callback, open_calls::OwnWork};
use crate::tracers::{Tracer, TracerError, TracerKind, TracerOptions, Tracers};
pub use process_tracers::with_tracers;
pub use request_error::RequestError;
use requested::Requested;

/// Registers the function tracers that come with the library, `graph` (the default one) and
/// `function`, and answers requests from now on. Later calls do nothing.
pub fn install() {
    install_with(Threads::Running);
}

fn install_with(threads: Threads) {
    let _own = OwnWork::begin();
    arch::prepare_decoder();
    fork_hooks::install(threads);
    if process_tracers::lock().is_some() {
        return;
    }
    // Without a lock held, because these wait for the loader's.
    record::find_in_library();
    let objects = CodeObjects::load();
    with_engine(threads, |engine| engine.make_code_in(objects));
    let mut guard = process_tracers::lock();
    if guard.is_some() {
        return;
    }
    let tracers = guard.insert(Tracers::new(threads));
    // Neither name is taken yet.
    let _ = tracers.register("graph", TracerOptions::new(TracerKind::Graph));
    let _ = tracers.register("function", TracerOptions::new(TracerKind::Function));
    drop(guard);
    ringmark::client::answer_requests(TRACE, answer_as_helper, idle);
}

/// Sets the function that a callback tracer calls, and makes the tracer on first use. Functions are
/// selected for it, and it is started and stopped, as for any function tracer: by its name, from
/// the command line or through [`answer`]. Does [`install`] first.
///
/// ```
/// use ringmark_function_tracer::{Callback, control};
///
/// fn entered(function: u64, caller: u64) {
///     // Only what a signal handler may do.
/// }
/// control::set_callback("mine", Some(Callback::new(entered)))?;
/// # Ok::<(), ringmark_function_tracer::tracers::TracerError>(())
/// ```
///
/// # Errors
/// A tracer of this name is of another kind, or there are too many tracers.
pub fn set_callback(name: &str, callback: Option<Callback>) -> Result<(), TracerError> {
    install();
    with_tracers(|tracers| tracers.set_callback(name, callback))
}

/// Does [`install`] and the starts of `requests`, before the program runs or, with
/// [`Threads::Running`], later. `requests` are lines as in a request, or one line of them separated
/// by `;`. Each `tracer=` but the first begins another start.
///
/// # Errors
/// A start cannot be done; those before it are done.
pub fn install_and_start(threads: Threads, requests: &str) -> Result<(), RequestError> {
    install_with(threads);
    let result = with_tracers(|tracers| start_all(tracers, requests));
    with_engine(threads, Engine::threads_run);
    if let Ok(Some(pid)) = result {
        moved_sites::wait_for(pid);
    }
    result.map(drop)
}

/// Returns the process whose sites are to be waited for.
fn start_all(tracers: &mut Tracers, requests: &str) -> Result<Option<u32>, RequestError> {
    let mut awaited = None;
    for lines in starts(requests) {
        let lines = lines.into_iter().map(RequestLine::parse);
        let lines = lines.collect::<Result<Vec<_>, _>>()?;
        let requested = Requested::read(&lines)?;
        awaited = awaited.or(requested.awaited);
        start(tracers, requested)?;
    }
    Ok(awaited)
}

/// The same on the thread that answers requests, which does nothing of the program's.
fn answer_as_helper(request: &str) -> Result<String, String> {
    OwnWork::begin().for_ever();
    answer(request)
}

/// Does what a request says and returns the answer.
///
/// # Errors
/// The reason, as text for the sender.
pub fn answer(request: &str) -> Result<String, String> {
    let request = Request::parse(request).map_err(RequestError::from);
    let answer = request.and_then(|request| answer_to(&request));
    answer.map_err(|error| error.to_string())
}

fn answer_to(request: &Request<'_>) -> Result<String, RequestError> {
    let requested = Requested::read(&request.lines)?;
    let name = requested.tracer;
    with_tracers(|tracers| match request.verb {
        Verb::Start => start(tracers, requested),
        Verb::Stop => stop(tracers, name),
        Verb::Profile => gathered(tracers, &requested),
        Verb::Set | Verb::Filter | Verb::Notrace | Verb::Trigger => {
            change(tracers, request.verb, requested)
        }
        Verb::Snapshot => Ok(answer_texts::snapshots(&tracers.take_snapshots())),
        Verb::Remove => {
            let found = tracers.find(name)?.name().to_owned();
            if tracers.find(name)?.is_on() {
                let _ = tracers.stop(name)?;
                written(tracers, name)?;
            }
            Ok(answer_texts::report(&tracers.remove(&found)?))
        }
        Verb::Renew => {
            let state = lease::renew(tracers, name, requested.lease_ms)?;
            let given_up = answer_texts::given_up(tracers.find(name)?);
            Ok(format!("{}\n{given_up}", AnswerLine::State(state)))
        }
        Verb::Status => Ok(engine(|engine| {
            engine.rescan();
            answer_texts::status(tracers, engine)
        })),
        Verb::Sites => moved_sites::add(tracers, &requested),
        Verb::Functions => Ok(engine(|engine| {
            answer_texts::functions(
                engine,
                requested.selection(),
                requested.from,
                requested.refused,
            )
        })),
    })
}

/// Changes a tracer. A filter that selects no function is refused.
fn change(
    tracers: &mut Tracers,
    verb: Verb,
    requested: Requested<'_>,
) -> Result<String, RequestError> {
    let name = requested.tracer;
    let before = tracers.find(name)?.options().clone();
    let is_filter = matches!(verb, Verb::Filter | Verb::Notrace);
    let outcome = tracers.set(name, |options| requested.change(options))?;
    let selection = &tracers.find(name)?.options().selection;
    if is_filter && outcome.matched == 0 && !selection.is_empty() {
        let found = selection.text();
        let stays = before.selection.text();
        tracers.set(name, |options| *options = before)?;
        return Err(RequestError::NoMatch { found, stays });
    }
    Ok(answer_texts::changed(&outcome, tracers.find(name)?))
}

/// Stops the tracer with this name, all tracers for `*`, the default one without a name.
fn stop(tracers: &mut Tracers, name: Option<&str>) -> Result<String, RequestError> {
    let is_meant = |tracer: &Tracer| match name {
        Some("*") => true,
        Some(name) => tracer.name() == name,
        None => tracer.is_default(),
    };
    let on = tracers.all().iter().filter(|t| t.is_on() && is_meant(t));
    let on: Vec<_> = on.map(|tracer| tracer.name().to_owned()).collect();
    let (outcome, given_up) = if name == Some("*") {
        (tracers.stop_all()?, String::new())
    } else {
        lease::begin(tracers, name, None);
        let given_up = answer_texts::given_up(tracers.find(name)?);
        (tracers.stop(name)?, given_up)
    };
    on.iter()
        .try_for_each(|name| written(tracers, Some(name)))?;
    Ok(answer_texts::report(&outcome) + &given_up)
}

/// The answer with what a profile tracer has gathered.
fn gathered(tracers: &Tracers, requested: &Requested<'_>) -> Result<String, RequestError> {
    let tracer = tracers.find(requested.tracer)?;
    match tracer.options().kind {
        TracerKind::Profile => Ok(profile_report::answer(tracers, tracer, requested.from)),
        kind => Err(TracerError::OtherKind {
            name: tracer.name().to_owned(),
            kind: kind.name(),
        }
        .into()),
    }
}

/// Writes what a stopped profile tracer has gathered into the session.
fn written(tracers: &Tracers, name: Option<&str>) -> Result<(), RequestError> {
    profile_report::write(tracers, tracers.find(name)?);
    Ok(())
}

fn engine<R>(work: impl FnOnce(&mut Engine) -> R) -> R {
    with_engine(Threads::Running, work)
}

fn start(tracers: &mut Tracers, requested: Requested<'_>) -> Result<String, RequestError> {
    let (tracer, lease_ms) = (requested.tracer, requested.lease_ms);
    let by_name = TracerKind::Profile;
    // The tracer `profile` is made by the first request that names it.
    let kind = requested.kind.or_else(|| {
        let is_new =
            tracer.is_some_and(|name| name == by_name.name() && tracers.find(tracer).is_err());
        is_new.then_some(by_name)
    });
    match (tracers.find(tracer), tracer.zip(kind)) {
        (Ok(found), Some((name, kind))) if found.options().kind != kind => {
            return Err(TracerError::OtherKind {
                name: name.to_owned(),
                kind: found.options().kind.name(),
            }
            .into());
        }
        (Err(_), Some((name, kind))) => drop(tracers.register(name, TracerOptions::new(kind))?),
        _ => {}
    }
    let found = tracers.find(tracer)?;
    if !requested.selects(found.options()) {
        return Err(RequestError::NoFilter);
    }
    if found.options().kind == TracerKind::Profile {
        profile_report::write_at_exit();
    }
    let was_on = tracers.find(tracer)?.is_on();
    if requested.anew {
        tracers.count_anew(tracer);
    }
    let outcome = tracers.start_with(tracer, |options| requested.change(options))?;
    lease::begin(tracers, tracer, lease_ms);
    if !was_on {
        profile_report::begin(tracers.find(tracer)?);
    }
    Ok(answer_texts::changed(&outcome, tracers.find(tracer)?))
}

/// Between requests: ends leases that were not renewed, follows modules that came and went, for
/// which a thread of the program may wait, keeps budgets.
fn idle() {
    let _own = OwnWork::begin();
    let turn = turns::begin();
    if let Some(mut tracers) = process_tracers::try_lock()
        && let Some(tracers) = tracers.as_mut()
    {
        lease::expire(tracers);
        tracers.follow_modules();
        turns::end(turn);
        tracers.keep_budgets();
    }
}
