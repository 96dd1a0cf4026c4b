//! `doctor`: what works here, what does not, and what to do.

use std::io::Write;
use std::process::{Command, Stdio};

use ringmark::__private::reference;
use ringmark_console::json::{Head, JsonOption};
use ringmark_console::units::counted;
use ringmark_console::wide::WideOption;
use ringmark_console::width::{pad, wrap};
use ringmark_console::{Exit, Sink, Style, json, printable};
use ringmark_reader::host;
use ringmark_reader::host::{Finding, Verdict};
use serde_json::json;

use crate::tracing::{profiles, surroundings};

/// Columns of a verdict's word, and of what was looked at.
const VERDICT_COLUMNS: usize = 9;
const ABOUT_COLUMNS: usize = 16;
/// Columns of a terminal from which on lines have a head.
const ROOMY: usize = 60;

/// Say what works here, what does not, and what to do
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Looks, and changes nothing. 'ok' works; 'absent' is not there, and few need it;
'limited' works in part; 'fails' does not work. With -p, a thread of PID that
has a seccomp filter is stopped for microseconds, to read the filter.

Exit codes: 0 all works, 1 something is limited, 4 programs cannot be traced
here, or PID cannot.

Examples:
  ringmark doctor
  ringmark doctor -p 812
  ringmark doctor --json | jq 'select(.verdict != \"ok\")'")]
pub(crate) struct Args {
    /// Say also what can be traced of this process
    #[arg(short, long, value_parser = crate::options::process::parse_process)]
    pid: Option<u32>,
    #[command(flatten)]
    json: JsonOption,
    #[command(flatten)]
    wide: WideOption,
}

/// What was looked at together.
struct Topic {
    name: &'static str,
    findings: Vec<Finding>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<Exit> {
        let topics = self.look();
        match self.json.is_on() {
            true => self.print_json(&topics)?,
            false => self.print_text(&topics)?,
        }
        Ok(exit(worst(&topics)))
    }

    fn look(&self) -> Vec<Topic> {
        let topic = |name, findings| Topic { name, findings };
        let mut sessions = host::findings(reference::session_bytes());
        sessions.extend(ends());
        let mut topics = vec![
            topic("sessions", sessions),
            topic("attaching", surroundings::attaching()),
            topic("functions", surroundings::parts()),
            topic("profiles", profiles::findings()),
        ];
        if let Some(pid) = self.pid {
            topics.push(topic("process", surroundings::of_process(pid)));
        }
        topics
    }

    fn print_json(&self, topics: &[Topic]) -> anyhow::Result<()> {
        let mut out = Sink::direct();
        for topic in topics {
            let head = Head {
                pid: self.pid.filter(|_| topic.name == "process"),
                ..Head::default()
            };
            for finding in &topic.findings {
                writeln!(out, "{}", as_json(topic.name, &head, finding))?;
            }
        }
        Ok(out.finish()?)
    }

    fn print_text(&self, topics: &[Topic]) -> anyhow::Result<()> {
        let style = Style::detect();
        let columns = self.wide.columns();
        let mut out = Sink::paged().within(columns);
        for topic in topics {
            writeln!(out, "{}{}{}", style.heading(), topic.name, style.plain())?;
            for finding in &topic.findings {
                out.write_all(lines(finding, columns, style).as_bytes())?;
            }
        }
        writeln!(out, "{}", summary(topics))?;
        Ok(out.finish()?)
    }
}

/// Whether ends of other processes are known: seen with a process of our own that ends.
fn ends() -> Option<Finding> {
    let own = std::env::current_exe().ok()?;
    let mut child = Command::new(own);
    child.arg("--version").stdin(Stdio::null());
    child.stdout(Stdio::null()).stderr(Stdio::null());
    Some(host::ends(child.spawn().ok()?))
}

fn worst(topics: &[Topic]) -> Verdict {
    let findings = topics.iter().flat_map(|topic| &topic.findings);
    let verdicts = findings.map(|finding| finding.verdict);
    verdicts.max().unwrap_or(Verdict::Works)
}

const fn exit(worst: Verdict) -> Exit {
    match worst {
        Verdict::Works | Verdict::Absent => Exit::FINE,
        Verdict::Limited => Exit::LOST,
        Verdict::Fails => Exit::NO_TARGET,
    }
}

/// The lines of a finding. Where there is room, its texts have a column of their own.
fn lines(finding: &Finding, columns: Option<usize>, style: Style) -> String {
    let is_narrow = columns.is_some_and(|columns| columns < ROOMY);
    let indent = if is_narrow {
        4
    } else {
        2 + VERDICT_COLUMNS + ABOUT_COLUMNS
    };
    let room = columns.map(|columns| columns.saturating_sub(indent).max(1));
    let margin = format!("\n{}", " ".repeat(indent));
    let column = |text: &str| {
        let text = printable(text);
        let wrapped = room.map_or_else(|| text.clone(), |room| wrap(&text, room));
        wrapped.replace('\n', &margin)
    };
    let mut verdict = finding.verdict.name().to_owned();
    pad(&mut verdict, VERDICT_COLUMNS);
    let mut about = finding.about.to_owned();
    match is_narrow {
        true => about += &margin,
        false => pad(&mut about, ABOUT_COLUMNS),
    }
    let (begin, end) = (colour(finding.verdict, style), style.plain());
    let mut text = format!("  {begin}{verdict}{end}{about}{}", column(&finding.found));
    if let Some(advice) = &finding.advice {
        text += &margin;
        text += &column(&format!("→ {advice}"));
    }
    text + "\n"
}

fn colour(verdict: Verdict, style: Style) -> &'static str {
    match verdict {
        Verdict::Works => "",
        Verdict::Absent => style.dim(),
        Verdict::Limited => style.warning(),
        Verdict::Fails => style.alarm(),
    }
}

/// What all of it comes to.
fn summary(topics: &[Topic]) -> String {
    let number = |verdict| {
        let findings = topics.iter().flat_map(|topic| &topic.findings);
        findings
            .filter(|finding| finding.verdict == verdict)
            .count() as u64
    };
    let version = reference::version();
    match worst(topics) {
        Verdict::Fails => {
            let failures = counted(number(Verdict::Fails), "failure");
            format!("ringmark {version}: {failures}, see above what to do")
        }
        Verdict::Limited => {
            let limits = counted(number(Verdict::Limited), "limit");
            format!("ringmark {version}: programs can be traced here, with {limits}")
        }
        Verdict::Works | Verdict::Absent => {
            format!("ringmark {version}: programs can be traced here")
        }
    }
}

fn as_json(topic: &str, head: &Head, finding: &Finding) -> serde_json::Value {
    let fields = json!({
        "topic": topic,
        "about": finding.about,
        "verdict": finding.verdict.name(),
        "found": finding.found,
        "advice": finding.advice,
    });
    json::object("finding", head, fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_is_lines_in_the_width_of_the_terminal() {
        let finding = Finding::limited("session size", "a few words ".repeat(12), "raise it");
        let piped = lines(&finding, None, Style::none());
        assert_eq!(piped.lines().count(), 2, "{piped}");
        assert!(
            piped.starts_with("  limited  session size    a few words"),
            "{piped}"
        );
        assert!(
            piped.ends_with("\n                           → raise it\n"),
            "{piped}"
        );
        for columns in [30, 40, 59, 60, 80, 200] {
            let text = lines(&finding, Some(columns), Style::none());
            let widest = text.lines().map(ringmark_console::width::width).max();
            assert!(widest <= Some(columns), "{columns}: {text}");
        }
    }

    #[test]
    fn the_worst_finding_decides_the_exit_code() {
        let of = |finding| {
            let findings = vec![Finding::works("x", "y"), finding];
            let topics = [Topic {
                name: "t",
                findings,
            }];
            (exit(worst(&topics)), summary(&topics))
        };
        assert_eq!(of(Finding::works("a", "b")).0, Exit::FINE);
        assert_eq!(of(Finding::absent("a", "b", "c")).0, Exit::FINE);
        let (code, text) = of(Finding::limited("a", "b", "c"));
        assert_eq!(code, Exit::LOST);
        assert!(text.ends_with("with 1 limit"), "{text}");
        assert_eq!(of(Finding::fails("a", "b", "c")).0, Exit::NO_TARGET);
    }
}
