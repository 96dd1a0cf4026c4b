//! `collect`: takes the streams of many hosts into a store.

mod allocator;
mod args;
mod kind_of_store;
mod log;

use std::io::{self, IsTerminal};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context;
use ringmark_collector::store::objects::ObjectStore;
use ringmark_collector::store::{TAKEN_WITHIN, is_taken};
use ringmark_collector::{Collector, CollectorSettings};

pub(crate) use self::args::Args;
use self::log::{Log, Report};
use crate::log::LogOptions;
use crate::option_source::OptionSource;
use crate::service::Service;
use ringmark_console::descriptors;
use ringmark_console::signals::Signals;
use ringmark_console::status::{Lines, write_line};
use ringmark_console::{Exit, Failure, note};

/// Most threads that wait for the disk at the same time. Where some hang, as many are left as
/// connections usually need.
const DISK_CALLS_MAX: usize = 128;
/// How long the end waits for calls to the disk.
const DISK_WITHIN: Duration = Duration::from_secs(1);
/// How often a signal is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

impl Args {
    /// Runs the command, which is one of the command line `all`.
    pub(crate) fn run(self, all: clap::Command) -> anyhow::Result<Exit> {
        let source = OptionSource::new(all, "collect");
        let args = match &self.config {
            Some(_) => source.read()?,
            None => self,
        };
        if args.check {
            let options = args.collector_options()?;
            let _ = args.place()?;
            ringmark_collector::check(&options)
                .map_err(|error| Failure::usage(error.to_string()))?;
            note("the options are valid");
            return Ok(Exit::FINE);
        }
        // Before another binary is looked for.
        args.check_kind_of_store()?;
        if args.objects.is_some() {
            allocator::set_up();
        }
        let place = args.place()?;
        descriptors::take_all();
        // A terminal that goes away ends what was started there without a file.
        let signals = match args.config.is_none() && io::stdin().is_terminal() {
            true => Signals::watch(),
            false => Signals::watch_and_reload(),
        };
        let signals = signals.context("watching signals")?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(DISK_CALLS_MAX)
            .enable_all()
            .build()
            .context("starting the runtime")?;
        let served = runtime.block_on(serve(args, place, signals, &source));
        // A call to a disk that hangs is not waited for: what it writes was not acknowledged.
        runtime.shutdown_timeout(DISK_WITHIN);
        served.map(|()| Exit::FINE)
    }
}

async fn serve(
    args: Args,
    place: Option<Arc<dyn ObjectStore>>,
    signals: Signals,
    source: &OptionSource,
) -> anyhow::Result<()> {
    let options = args.collector_options()?;
    let report = Report::new(&args)?;
    if options.objects.is_none() && is_taken(&options.store.root) {
        let (root, within) = (options.store.root.display(), TAKEN_WITHIN.as_secs());
        note(&format!(
            "{root}: another collector has the store; waiting {within} s for its end"
        ));
    }
    let (notices, mut received) = tokio::sync::mpsc::unbounded_channel();
    let collector = Collector::start_in(place, options, notices)
        .await
        .map_err(|error| Failure::usage(error.to_string()))?;
    let mut log = Log::start(args.log)?;
    log.started(&collector);
    let addresses = collector.addresses();
    let (figures, settings) = (collector.figures(), collector.settings());
    let mut service = Service::started();
    service.ready();
    let mut lines = Lines::new(args.json.is_on());
    if args.json.is_on() {
        log.status(report.status("listening", &addresses, &figures));
    }
    let left = collector
        .run(async {
            while !signals.stop.load(Ordering::Relaxed) {
                let _ = tokio::time::timeout(LOOK_EVERY, async {
                    while let Some(notice) = received.recv().await {
                        log.notice(notice);
                    }
                })
                .await;
                service.alive(figures.disk_wait());
                if signals.reload.swap(false, Ordering::Relaxed) {
                    log.reloaded(reload(source, &args, &settings));
                }
                if lines.is_due() {
                    log.status(report.status("listening", &addresses, &figures));
                }
            }
            service.stopping();
        })
        .await;
    // The last notices come from connections that end now.
    while let Ok(notice) = received.try_recv() {
        log.notice(notice);
    }
    log.ended(left);
    let status = report.status("ended", &addresses, &figures);
    if args.json.is_on() {
        log.status(status.clone());
    }
    log.end();
    write_line(args.status_file.as_deref(), &status)
}

/// Reads the options again and hands them to the collector, which was started with `before`. If anything
/// is wrong, the collector goes on as before. Returns how to write notices from now on.
fn reload(
    source: &OptionSource,
    before: &Args,
    settings: &CollectorSettings,
) -> anyhow::Result<LogOptions> {
    let now: Args = source.read()?;
    if now.json.is_on() != before.json.is_on() {
        return Err(Failure::usage("json: a change needs a restart").into());
    }
    if now.status_file != before.status_file {
        return Err(Failure::usage("status-file: a change needs a restart").into());
    }
    settings.change(now.collector_options()?)?;
    Ok(now.log)
}
