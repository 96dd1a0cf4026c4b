//! Measures what tracing costs here, and proves that nothing committed is missing from a killed
//! program and that every lost event is counted. It takes less than ten seconds, whatever the size of
//! the directory.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use ringmark_decoder::Verification;
use ringmark_reader::{Destination, Dump, Durability, RecordOptions, Recorder, Selection};
use rustix::fs::{MemfdFlags, memfd_create};

use super::child::Trace;
use super::median::median;
use super::parent::{Jobs, Report, Running, private_place};
use super::trace_file::read;
use ringmark_console::Style;
use ringmark_console::units::{count, duration};

/// Fewest events of a measured job, so that its time is no accident.
const EVENTS_MEASURED: u64 = 10_000;
/// Fewest events of a job whose rings are far too small.
const EVENTS_MANY: u64 = 20_000;
/// How long a measured job should take. It indexes a part of a large directory: on a busy machine
/// many short rounds tell more than a few long ones.
const JOB_TIME: Duration = Duration::from_millis(60);
/// A measured job with large files is cut short after this time.
const JOB_SECONDS_MAX: u64 = 1;
/// How long all measured jobs together should take.
const COST_TIME: Duration = Duration::from_secs(5);
const ROUNDS_MAX: usize = 101;
/// Events of the job that is killed, after which it is killed.
const EVENTS_KILLED: u64 = 10_000;
/// The job to be killed is killed after this time at the latest.
const KILL_WITHIN: Duration = Duration::from_secs(2);
/// How often the slow reader looks.
const SLOW: Duration = Duration::from_millis(20);

/// Measures the cost, and overloads a job; returns whether every sum is right.
///
/// # Errors
/// A job cannot be started, recorded, or read back.
pub(super) fn cost_and_overload(
    out: &mut impl Write,
    style: Style,
    jobs: &mut Jobs,
    main: &Report,
) -> anyhow::Result<bool> {
    let work = Scratch(private_place()?);
    heading(out, style, "What tracing costs")?;
    cost(out, jobs, &work, &sized(main, EVENTS_MEASURED))?;
    heading(
        out,
        style,
        "Overload on purpose: rings of 2 x 4 KiB, a reader that looks every 20 ms",
    )?;
    tiny(out, style, jobs, &work, &sized(main, EVENTS_MANY))
}

fn heading(out: &mut impl Write, style: Style, text: &str) -> anyhow::Result<()> {
    writeln!(out)?;
    first_heading(out, style, text)
}

fn first_heading(out: &mut impl Write, style: Style, text: &str) -> anyhow::Result<()> {
    writeln!(out, "{}{text}{}", style.heading(), style.plain())?;
    Ok(out.flush()?)
}

/// A directory for trace files that are removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn trace_file(&self) -> PathBuf {
        self.0.join("trace.rmk")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // On failure it stays in the temporary directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Arguments that bound a job: a small directory is indexed several times, a large one in part.
fn sized(main: &Report, events_min: u64) -> Vec<String> {
    let part = JOB_TIME.as_nanos() as f64 / main.took_ns.max(1) as f64;
    let files = (main.totals.files as f64 * part) as u64;
    let mut more = vec![
        format!("--events-min={events_min}"),
        format!("--seconds-max={JOB_SECONDS_MAX}"),
    ];
    if part < 1.0 {
        more.push(format!("--files-max={}", files.max(1)));
    }
    more
}

/// Measures the job without tracing, traced, and recorded, in turns; then one event alone.
fn cost(
    out: &mut impl Write,
    jobs: &mut Jobs,
    work: &Scratch,
    size: &[String],
) -> anyhow::Result<()> {
    let start = Instant::now();
    let mut rounds: Vec<[Report; 3]> = Vec::new();
    while rounds.len() < ROUNDS_MAX && (rounds.len() < 3 || start.elapsed() < COST_TIME) {
        rounds.push(round(jobs, work, size, rounds.len())?);
    }
    let unit = Unit::of(&rounds);
    let (plain, spread) = unit.middle(&rounds, 0);
    writeln!(
        out,
        "  not traced           {:>8} a {}   median of {} rounds, +/- {spread:.0} %",
        duration(plain as u64),
        unit.name(),
        rounds.len()
    )?;
    for (way, name) in [(1, "in memory"), (2, "and recorded")] {
        let (traced, _) = unit.middle(&rounds, way);
        let time = duration(traced as u64);
        let ratio = |r: &[Report; 3]| unit.one(&r[way]) / unit.one(&r[0]).max(1.0);
        let ratios: Vec<_> = rounds.iter().map(ratio).collect();
        let more = added(traced / plain.max(1.0), &ratios, spread);
        let unit = unit.name();
        writeln!(out, "  traced {name:<13} {time:>8} a {unit}   {more}")?;
    }
    one_event(out, jobs)
}

/// What tracing adds, by the two times that are shown: a figure only if it is more than the rounds differ by,
/// in per cent, and so many rounds agree that chance would have it so once in twenty times at most.
fn added(shown: f64, ratios: &[f64], spread: f64) -> String {
    let more = (shown - 1.0) * 100.0;
    let slower = ratios.iter().filter(|ratio| **ratio > 1.0).count();
    if more <= spread || chance(ratios.len(), slower) > 0.05 {
        return "below noise".to_owned();
    }
    format!("{more:+.1} %")
}

/// How likely it is that so many or more of so many coins show one side.
fn chance(coins: usize, least: usize) -> f64 {
    // Number of ways to have k of them, from the one before.
    let mut ways = vec![1.0_f64];
    for k in 0..coins {
        let next = ways[k] * (coins - k) as f64 / (k + 1) as f64;
        ways.push(next);
    }
    let enough: f64 = ways[least.min(coins)..].iter().sum();
    enough / ways.iter().sum::<f64>()
}

/// One round: the job not traced, traced, traced and recorded. Rounds begin with each in turn.
fn round(
    jobs: &mut Jobs,
    work: &Scratch,
    size: &[String],
    number: usize,
) -> anyhow::Result<[Report; 3]> {
    const WAYS: [Trace; 3] = [Trace::Off, Trace::Flight, Trace::Record];
    let mut reports = [None; 3];
    for turn in 0..WAYS.len() {
        let way = (number + turn) % WAYS.len();
        let job = jobs.start(WAYS[way], None, size)?;
        if WAYS[way] == Trace::Record {
            recorder(&job, work)?.run(&AtomicBool::new(false))?;
        }
        reports[way] = Some(job.report()?);
    }
    let [Some(off), Some(flight), Some(record)] = reports else {
        unreachable!("each way has had its turn")
    };
    Ok([off, flight, record])
}

/// What a time is given for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    File,
    Directory,
}

impl Unit {
    /// Files, unless there are none.
    fn of(rounds: &[[Report; 3]]) -> Self {
        let has_files = rounds.iter().flatten().all(|r| r.totals.files > 0);
        if has_files {
            Self::File
        } else {
            Self::Directory
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Directory => "directory",
        }
    }

    /// ns of one file or directory.
    fn one(self, report: &Report) -> f64 {
        let count = match self {
            Self::File => report.totals.files,
            Self::Directory => report.totals.directories,
        };
        report.took_ns as f64 / count.max(1) as f64
    }

    /// Median ns of one, and by how many percent the middle half of all rounds differs at most.
    fn middle(self, rounds: &[[Report; 3]], way: usize) -> (f64, f64) {
        let mut all: Vec<_> = rounds.iter().map(|r| self.one(&r[way])).collect();
        let middle = median(&mut all);
        let at = |part: usize| all.get(all.len() * part / 4).copied().unwrap_or(middle);
        let differs = (middle - at(1)).max(at(3) - middle);
        (middle, differs / middle.max(1.0) * 100.0)
    }
}

fn one_event(out: &mut impl Write, jobs: &mut Jobs) -> anyhow::Result<()> {
    let said = jobs
        .start(Trace::Flight, None, &["--measure".to_owned()])?
        .result()?;
    let number = |name: &str| {
        said[name]
            .as_f64()
            .with_context(|| format!("demo: the job does not say {name}"))
    };
    let (event, clock) = (number("event_ns")?, number("clock_ns")?);
    let name = match said["clock"].as_str() {
        Some("tsc") => "rdtsc alone, in the same run",
        _ => "no steady time stamp counter here",
    };
    writeln!(out, "  one event            {event:>5.1} ns")?;
    writeln!(
        out,
        "  one clock reading    {clock:>5.1} ns          {name}"
    )?;
    Ok(())
}

/// Kills a job that counts its own events in memory which outlives it, then reads what its rings hold.
/// Each worker may have been between an event and its count. Returns whether the sum is right.
///
/// # Errors
/// The job cannot be started, killed, or read back.
pub(super) fn killed(out: &mut impl Write, style: Style, jobs: &mut Jobs) -> anyhow::Result<bool> {
    first_heading(out, style, "A traced program, killed with kill -9")?;
    let tally = File::from(memfd_create("tally", MemfdFlags::CLOEXEC)?);
    tally.set_len(8 * jobs.workers as u64)?;
    let forever = format!("--events-min={}", u64::MAX);
    let mut job = jobs.start(Trace::Record, Some(&tally), &[forever])?;
    let work = Scratch(private_place()?);
    let start = Instant::now();
    while counted(&tally, jobs.workers)? < EVENTS_KILLED && start.elapsed() < KILL_WITHIN {
        thread::sleep(Duration::from_micros(200));
    }
    job.kill()?;
    let own = counted(&tally, jobs.workers)?;
    recorder(&job, &work)?.run(&AtomicBool::new(false))?;
    let found = read(&work.trace_file())?.verify();
    let written = found.events + found.lost;
    let is_right = found.missing == 0
        && found.damage.is_empty()
        && (own..=own + jobs.workers as u64).contains(&written);
    writeln!(out, "  its own count         {:>9} events", count(own))?;
    writeln!(
        out,
        "  read back             {:>9} events{}",
        count(found.events),
        also_lost(&found)
    )?;
    let expected = format!(
        "none missing; {} were between event and count",
        written.saturating_sub(own)
    );
    verdict(out, style, is_right, &expected)?;
    Ok(is_right)
}

fn also_lost(found: &Verification) -> String {
    match found.lost {
        0 => String::new(),
        lost => format!(" and {} counted as lost: its rings were full", count(lost)),
    }
}

fn counted(tally: &File, workers: usize) -> anyhow::Result<u64> {
    let mut sum = 0;
    for worker in 0..workers as u64 {
        let mut word = [0; 8];
        tally.read_exact_at(&mut word, 8 * worker)?;
        sum += u64::from_le_bytes(word);
    }
    Ok(sum)
}

/// Overloads a job's rings on purpose: nearly all events are lost, and each is counted.
fn tiny(
    out: &mut impl Write,
    style: Style,
    jobs: &mut Jobs,
    work: &Scratch,
    size: &[String],
) -> anyhow::Result<bool> {
    let job = jobs.start(Trace::Tiny, None, size)?;
    let mut recorder = recorder(&job, work)?;
    loop {
        recorder.step()?;
        if recorder.progress().sessions_open == 0 {
            break;
        }
        thread::sleep(SLOW);
    }
    recorder.finish()?;
    let emitted = job.report()?.totals.events;
    let found = read(&work.trace_file())?.verify();
    let is_right = emitted == found.events + found.lost && found.missing == 0 && found.complete;
    writeln!(out, "  emitted               {:>9} events", count(emitted))?;
    writeln!(out, "  delivered             {:>9}", count(found.events))?;
    writeln!(out, "  lost                  {:>9}", count(found.lost))?;
    verdict(out, style, is_right, "emitted = delivered + lost")?;
    Ok(is_right)
}

fn verdict(
    out: &mut impl Write,
    style: Style,
    is_right: bool,
    expected: &str,
) -> anyhow::Result<()> {
    if is_right {
        writeln!(out, "  right                 {expected}")?;
    } else {
        writeln!(
            out,
            "  {}WRONG{}                 expected: {expected}",
            style.alarm(),
            style.plain()
        )?;
    }
    Ok(())
}

fn recorder(job: &Running, work: &Scratch) -> anyhow::Result<Recorder> {
    let dump = Dump::create(&Destination::File(work.trace_file()), Durability::System)?;
    let selection = Selection::Path(job.session()?);
    Ok(Recorder::new(selection, dump, RecordOptions::default())?)
}

#[cfg(test)]
mod tests {
    use super::added;

    #[test]
    fn a_figure_is_more_than_noise() {
        let all = [1.1, 1.2, 1.15, 1.1, 1.3];
        assert_eq!(added(1.15, &all, 5.0), "+15.0 %");
        assert_eq!(
            added(1.15, &all, 21.0),
            "below noise",
            "less than the spread"
        );
        let most = [1.1, 1.2, 1.15, 1.1, 0.9];
        assert_eq!(
            added(1.1, &most, 5.0),
            "below noise",
            "chance has it in 6 of 32"
        );
        assert_eq!(added(0.9, &all, 5.0), "below noise");
        assert_eq!(added(1.1, &[], 0.0), "below noise");
    }
}
