//! A program with every macro of Ringmark, to be built where Ringmark cannot trace as well: prints
//! whether a session started, and how many arguments were evaluated.

use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use ringmark::{
    Event, Fork, InSpan, Keep, Mode, Session, async_span, counter, emit, event, event_at, flow,
    instrument, notrace, reserve, span, trace_fn,
};
use tracing_subscriber::layer::SubscriberExt;

static EVALUATED: AtomicU32 = AtomicU32::new(0);

/// An argument that counts its evaluations.
fn argument() -> u32 {
    EVALUATED.fetch_add(1, Relaxed) + 1
}

#[derive(Event)]
#[repr(C)]
#[event(name = "packet.seen")]
struct PacketSeen {
    #[event(unit = "bytes")]
    length: u32,
    ports: [u16; 2],
}

#[instrument(fields(path, length = argument()))]
fn serve(path: &str) -> usize {
    path.len()
}

#[instrument(fields(path, length = argument()))]
async fn serve_later(path: String) -> usize {
    path.len()
}

#[trace_fn]
fn traced() -> u32 {
    1
}

#[trace_fn]
mod block {
    pub(crate) fn traced() -> u32 {
        super::traced()
    }

    #[super::notrace]
    pub(crate) fn untraced() -> u32 {
        2
    }
}

/// Polls a future that never waits.
fn finish<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        let mut context = Context::from_waker(Waker::noop());
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
    }
}

fn record() {
    let path = "/index.html";
    let _span = span!(level: Debug, "request", path, bytes = argument());
    event!(level: Warn, category: "http", "answered", status = argument(), path = %path);
    event_at!(ringmark::ticks(), "packet", bytes = argument(), head = ?[1_u8, 2]);
    counter!("queue.depth", argument());
    flow!("job", 42_u64, step = argument());
    emit(&PacketSeen {
        length: 64,
        ports: [80, 1024],
    });
    if let Some(reserved) = reserve::<PacketSeen>() {
        let packet = PacketSeen {
            length: argument(),
            ports: [80, 1024],
        };
        reserved.write(&packet).commit();
    }
    let answered = serve(path) + finish(serve_later(path.to_owned()));
    let later = async { block::traced() + block::untraced() };
    let sum = finish(later.in_span(async_span!("later", id = argument())));
    assert_eq!((answered, sum), (2 * path.len(), 3));
}

fn main() {
    let layered = tracing_subscriber::registry().with(ringmark::tracing::layer());
    tracing::subscriber::with_default(layered, || tracing::info!(rows = 3, "query done"));
    tracing::subscriber::with_default(ringmark::tracing::recorder(), || {
        tracing::info_span!("query").in_scope(|| tracing::info!("query done"));
    });
    let session = Session::builder()
        .mode(Mode::Overwrite)
        .keep(Keep::Never)
        .fork(Fork::Off)
        .memfd(true)
        .start();
    match &session {
        Ok(session) => println!("session {:?}", session.clock()),
        Err(error) => println!("no session: {error}"),
    }
    println!("current session: {}", Session::current().is_some());
    println!("thread has a ring: {}", ringmark::attach_thread());
    match ringmark::tracing::init() {
        Ok(session) => println!("bridge: session {}", session.is_some()),
        Err(error) => println!("bridge: {error}"),
    }
    record();
    println!("evaluated: {}", EVALUATED.load(Relaxed));
}
