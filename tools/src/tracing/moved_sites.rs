//! Functions that are to be traced although their compiler left no patch site: found in the files of a process,
//! and handed to its function tracer.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use ringmark_attach::{JUMP_BYTES, Jump, PutJumps};
use ringmark_format::mailbox::TEXT_BYTES_MAX;
use ringmark_format::tracer_text::{
    AnswerLine, MovedJump, MovedSite, Request, RequestLine, TrampolineRange, Verb,
};
use ringmark_function_tracer::selection::{MovedIn, Selection, Syntax};
use ringmark_movable::Form;

use super::mapped::{self, MappedFile};
use super::movable::{MovableFile, MovableFunction};
use super::requests::Answer;
use super::tracer_session::TracerSession;
use ringmark_console::units::{counted, duration};
use ringmark_console::{note, printable};

/// When a program is looked for that was started, and how often later.
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often modules are looked for that a program loads.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// Refused functions that are named at most.
const NAMED_MAX: usize = 8;
/// What the loader is called. It tells of modules under a lock, and is not traced.
const LOADERS: [&str; 2] = ["ld-linux", "ld-musl"];

/// Such functions of one process. Files that were looked at are not looked at again.
#[derive(Debug)]
pub(crate) struct MovedSites {
    pid: u32,
    selection: Selection,
    seen: BTreeSet<(PathBuf, u64)>,
}

/// What was found in files that were not looked at before.
#[derive(Debug, Default)]
pub(crate) struct FoundSites {
    modules: Vec<ModuleSites>,
    /// Functions that were meant and cannot be traced, with the reason.
    refused: Vec<String>,
}

/// The sites of one module.
#[derive(Debug)]
struct ModuleSites {
    base: u64,
    build_id: String,
    sites: Vec<OwnedSite>,
}

/// A site with its texts.
#[derive(Debug)]
struct OwnedSite {
    function: u64,
    bytes: u64,
    site: u64,
    jump: OwnedJump,
    keeps_return_address: bool,
    code: Vec<u8>,
    /// As the request has it.
    code_text: String,
    name: String,
}

/// How a jump is put at a site.
#[derive(Debug)]
enum OwnedJump {
    OneStore,
    /// To padding with this content.
    Hop(u64, String),
    Several,
}

impl MovedSites {
    /// The functions that these lines of a request name. Their patterns are known to be right.
    pub(crate) fn of(pid: u32, lines: &[RequestLine<'_>]) -> Self {
        let (mut selection, mut syntax) = (Selection::default(), Syntax::Glob);
        for line in lines {
            let _ = match line {
                RequestLine::Match(of_next) => {
                    syntax = *of_next;
                    Ok(())
                }
                RequestLine::Inside("") | RequestLine::Caller("") => Ok(()),
                RequestLine::Filter(pattern)
                | RequestLine::Inside(pattern)
                | RequestLine::Caller(pattern) => selection.want(pattern, syntax),
                RequestLine::Notrace(pattern) => selection.leave_out(pattern, syntax),
                _ => Ok(()),
            };
        }
        Self {
            pid,
            selection,
            seen: BTreeSet::new(),
        }
    }

    /// Whether functions may be meant for which a compiler left no patch site. `has_sites`: whether the program's
    /// did so elsewhere in it.
    pub(crate) fn may_mean_any(&self, has_sites: bool) -> bool {
        let of = MovedIn {
            is_program: true,
            has_sites,
            may_be_part: false,
        };
        self.selection.means_moved(of)
    }

    /// Serves a program that was started to be traced, and what it becomes: hands over the sites before its own code
    /// runs, and those of modules that it loads later, until `is_over`.
    pub(crate) fn serve(&mut self, is_over: impl Fn() -> bool) {
        let mut pause = LOOK_FIRST;
        while !is_over() {
            thread::sleep(pause);
            pause = (2 * pause).min(LOOK_EVERY);
            // A process without a session yet, or no more, is looked at again.
            let Ok(Some(session)) = TracerSession::of(self.pid) else {
                continue;
            };
            self.seen.clear();
            // What went wrong is said by the recording, if the process has not just ended.
            let _ = self.serve_session(&session, &is_over);
            pause = LOOK_FIRST;
        }
    }

    fn serve_session(
        &mut self,
        session: &TracerSession,
        is_over: &impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        let image = image_of(self.pid);
        let found = self.look();
        found.tell(self.pid);
        let handed_over = found.hand_over(session);
        session.ask(Verb::Sites, &[])?;
        handed_over?;
        let mut followed = Instant::now();
        while !session.has_ended() && !is_over() && image_of(self.pid) == image {
            thread::sleep(LOOK_EVERY);
            if followed.elapsed() >= FOLLOW_EVERY {
                self.look().hand_over(session)?;
                followed = Instant::now();
            }
        }
        Ok(())
    }

    /// Looks at the files that the process has mapped since the last look.
    pub(crate) fn look(&mut self) -> FoundSites {
        let mut found = FoundSites::default();
        if self.selection.is_empty() {
            return found;
        }
        for file in mapped::files(self.pid) {
            if self.seen.insert((file.module.clone(), file.base)) && self.is_meant(&file) {
                self.look_at(&file, &mut found);
            }
        }
        found
    }

    /// Whether functions of a file may be meant: only then it is read as a whole.
    fn is_meant(&self, file: &MappedFile) -> bool {
        let name = file.module.file_name().unwrap_or_default();
        let is_loader = LOADERS
            .iter()
            .any(|loader| name.as_encoded_bytes().starts_with(loader.as_bytes()));
        let of = file.moved_in(false);
        !is_loader && self.selection.means_moved_in(name.as_encoded_bytes(), of)
    }

    fn look_at(&self, file: &MappedFile, found: &mut FoundSites) {
        let movable = match MovableFile::read(&file.path, &file.module) {
            Ok(movable) => movable,
            Err(error) => return found.refused.push(error.text),
        };
        let mut sites = Vec::new();
        for function in movable.functions().filter(|one| one.is_function()) {
            let of = file.moved_in(function.function.may_be_part);
            let is_wanted = |candidate: &_| self.selection.wants_moved(candidate, of);
            let Some(wanted) = function.candidates().find(is_wanted) else {
                continue;
            };
            match OwnedSite::of(function, wanted.symbol) {
                Ok(site) => sites.push(site),
                Err(reason) if function.may_be_meant() => {
                    found.refused.push(format!("{}: {reason}", function.name()));
                }
                // Startup code, which patterns match by chance.
                Err(_) => {}
            }
        }
        if !sites.is_empty() {
            found.modules.push(ModuleSites {
                base: file.base,
                build_id: hex(movable.build_id()),
                sites,
            });
        }
    }
}

impl MappedFile {
    fn moved_in(&self, may_be_part: bool) -> MovedIn {
        MovedIn {
            is_program: self.is_program,
            has_sites: self.has_sites,
            may_be_part,
        }
    }
}

impl OwnedSite {
    /// The site of a function that has this name; the error: why it cannot be traced.
    fn of(function: MovableFunction<'_>, name: &[u8]) -> Result<Self, String> {
        if let Some(reason) = function.refusal() {
            return Err(reason);
        }
        let movable = function
            .function
            .judged
            .map_err(|error| error.to_string())?;
        Ok(Self {
            function: function.function.at,
            bytes: function.function.size,
            site: movable.site,
            jump: match movable.form {
                Form::Hop { at, padding } => OwnedJump::Hop(at, hex(&padding)),
                Form::Several => OwnedJump::Several,
                Form::OneStore | Form::Call => OwnedJump::OneStore,
            },
            keeps_return_address: function.keeps_return_address(),
            code: movable.code().to_vec(),
            code_text: hex(movable.code()),
            name: String::from_utf8_lossy(name).into_owned(),
        })
    }

    /// The jump at this address to a trampoline; `None`: it is out of reach.
    fn jump_to(&self, at: u64, to: u64) -> Option<Jump> {
        let distance = to.wrapping_sub(at + JUMP_BYTES as u64).cast_signed();
        let [d0, d1, d2, d3] = i32::try_from(distance).ok()?.to_le_bytes();
        Some(Jump {
            at,
            expected: *self.code.first_chunk()?,
            code: [0xe9, d0, d1, d2, d3],
        })
    }

    fn line(&self) -> RequestLine<'_> {
        RequestLine::Moved(MovedSite {
            function: self.function,
            bytes: self.bytes,
            site: self.site,
            jump: match &self.jump {
                OwnedJump::OneStore => MovedJump::OneStore,
                OwnedJump::Hop(at, padding) => MovedJump::Hop(*at, padding),
                OwnedJump::Several => MovedJump::Several,
            },
            keeps_return_address: self.keeps_return_address,
            code: &self.code_text,
            name: &self.name,
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl FoundSites {
    /// Whether a function can be traced; the error: why the first of those that were meant cannot.
    pub(crate) fn any(&self) -> Result<(), Option<&str>> {
        match self.modules.is_empty() {
            true => Err(self.refused.first().map(String::as_str)),
            false => Ok(()),
        }
    }

    /// Prints on standard error what cannot be traced.
    pub(crate) fn tell(&self, pid: u32) {
        for text in self.refused.iter().take(NAMED_MAX) {
            note(&printable(text));
        }
        let more = self.refused.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            let more = counted(more as u64, "function");
            note(&format!(
                "and {more} more cannot be traced: 'ringmark functions -p {pid} --why NAME' says why"
            ));
        }
    }

    /// Hands the sites to the function tracer, disabled, and prints which it refuses.
    ///
    /// # Errors
    /// It does not answer, or the process has loaded another file.
    pub(crate) fn hand_over(&self, session: &TracerSession) -> anyhow::Result<()> {
        for module in &self.modules {
            let mut parts = module.parts().into_iter().peekable();
            while let Some(mut lines) = parts.next() {
                if parts.peek().is_some() {
                    lines.push(RequestLine::More);
                }
                let answer = session.ask(Verb::Sites, &lines)?;
                answer.tell_refusals();
                let to_put: Vec<_> = trampolines(&answer).collect();
                if !to_put.is_empty() {
                    module.put_jumps(session, &to_put)?;
                }
            }
        }
        Ok(())
    }
}

/// The trampolines for which the tracer wants jumps put into the program.
fn trampolines(answer: &Answer) -> impl Iterator<Item = TrampolineRange> {
    answer.lines().filter_map(|line| match line {
        AnswerLine::Trampolines(range) => Some(range),
        _ => None,
    })
}

impl ModuleSites {
    /// Puts the jumps into the program that take the place of several instructions, and has the tracer take note of them. What
    /// was not put is said.
    fn put_jumps(&self, session: &TracerSession, to_put: &[TrampolineRange]) -> anyhow::Result<()> {
        let put = self
            .jumps(session.pid(), to_put)
            .map_err(|error| error.to_string());
        let put = put.and_then(|jumps| {
            let done = ringmark_attach::put_jumps(session.pid().cast_signed(), &jumps);
            done.map_err(|error| error.to_string())
        });
        match put {
            Ok(done) => self.tell(session.pid(), &done),
            Err(error) => note(&printable(&format!(
                "{error}; functions that need that are not traced"
            ))),
        }
        let module = RequestLine::Module {
            base: self.base,
            build_id: &self.build_id,
        };
        session.ask(Verb::Sites, &[module, RequestLine::Put])?;
        Ok(())
    }

    /// The jumps to these trampolines that are not there.
    fn jumps(&self, pid: u32, to_put: &[TrampolineRange]) -> io::Result<Vec<Jump>> {
        let sites = self.sites.iter();
        let over_several = sites.filter(|site| matches!(site.jump, OwnedJump::Several));
        let expected: BTreeMap<u64, &OwnedSite> = over_several
            .map(|site| (self.base.wrapping_add(site.site), site))
            .collect();
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let mut jumps = Vec::new();
        for of in to_put {
            for number in 0..of.count {
                let trampoline = of.at.wrapping_add(number.wrapping_mul(of.bytes));
                let mut at = [0; 8];
                memory.read_exact_at(&mut at, trampoline.wrapping_add(of.site))?;
                let at = u64::from_le_bytes(at);
                let site = expected.get(&at);
                let jump =
                    site.and_then(|site| site.jump_to(at, trampoline.wrapping_add(of.entry)));
                let is_there = |jump: &Jump| {
                    let mut found = [0; JUMP_BYTES];
                    memory.read_exact_at(&mut found, at).is_ok() && found == jump.code
                };
                jumps.extend(jump.filter(|jump| !is_there(jump)));
            }
        }
        Ok(jumps)
    }

    fn tell(&self, pid: u32, done: &PutJumps) {
        if done.put > 0 {
            note(&format!(
                "pid {pid}: all threads stood still for {} to prepare {}",
                duration(done.longest_stop.as_nanos() as u64),
                counted(done.put as u64, "function")
            ));
        }
        let name = |at: u64| {
            let at = at.wrapping_sub(self.base);
            let site = self.sites.iter().find(|site| site.site == at);
            site.map_or("", |site| site.name.as_str())
        };
        for (at, why) in done.left.iter().take(NAMED_MAX) {
            note(&printable(&format!("{} is not traced: {why}", name(*at))));
        }
        let more = done.left.len().saturating_sub(NAMED_MAX);
        if more > 0 {
            note(&format!(
                "and {} more are not traced",
                counted(more as u64, "function")
            ));
        }
    }

    /// Lines of requests, each as long as a request may be.
    fn parts(&self) -> Vec<Vec<RequestLine<'_>>> {
        let head = RequestLine::Module {
            base: self.base,
            build_id: &self.build_id,
        };
        let length = |lines: &[RequestLine<'_>]| {
            let lines = lines.to_vec();
            let verb = Verb::Sites;
            Request { verb, lines }.to_string().len()
        };
        let first = length(&[head, RequestLine::More]);
        let (mut parts, mut lines, mut bytes) = (Vec::new(), vec![head], first);
        for site in &self.sites {
            let more = length(&[site.line()]);
            if first + more > TEXT_BYTES_MAX {
                continue; // Its name is longer than a request may be.
            }
            if bytes + more > TEXT_BYTES_MAX {
                parts.push(std::mem::replace(&mut lines, vec![head]));
                bytes = first;
            }
            lines.push(site.line());
            bytes += more;
        }
        parts.push(lines);
        parts
    }
}

/// What is different after a process has become another program: where the kernel put things for it.
fn image_of(pid: u32) -> Vec<u8> {
    std::fs::read(format!("/proc/{pid}/auxv")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_is_handed_over_in_requests_that_fit() {
        let site = |n: u64| OwnedSite {
            function: n,
            bytes: 64,
            site: n,
            jump: OwnedJump::OneStore,
            keeps_return_address: false,
            code: vec![0xb8, 1, 0, 0, 0],
            code_text: "b801000000".to_owned(),
            name: "n".repeat(n as usize % 300),
        };
        let mut sites: Vec<_> = (0..1000).map(site).collect();
        sites[500].name = "long".repeat(TEXT_BYTES_MAX);
        let module = ModuleSites {
            base: 0x7f00_0000_0000,
            build_id: "ab".repeat(20),
            sites,
        };
        let parts = module.parts();
        let mut count = 0;
        for mut lines in parts {
            count += lines.len() - 1;
            lines.push(RequestLine::More);
            let verb = Verb::Sites;
            let text = Request { verb, lines }.to_string();
            assert!(text.len() <= TEXT_BYTES_MAX, "{}", text.len());
        }
        assert_eq!(count, 999);
    }
}
