//! A profile as one HTML page: flame graphs of what ran and of what was waited for, and tables.
//!
//! Its data is JSON in the element `data`. Names and what is waited for stand in `names`, each once; other places have
//! their numbers there. Stacks have their frames from the outermost on. `running`: ns of the innermost function's own
//! code, ns in the kernel that it had called, stack. `waiting`: ns, waits, the longest in ns, what for, stack.
//! `functions`: ns of its own code, ns with what it called, ns of waiting, name, module. `threads`: number, name, ns
//! running, ready to run, waiting; then waits, the longest in ns, preemptions, all 0 where they are not known.

use std::io::{self, Write};

use ringmark_decoder::escape;
use ringmark_profile::{Function, Profile};

use crate::texts::Texts;
use crate::timeline::processes::printable;

const HEAD: &str = include_str!("page/profile.html");
const STYLES: [&str; 2] = [
    include_str!("page/page.css"),
    include_str!("page/profile.css"),
];
const SCRIPTS: [&str; 4] = [
    include_str!("page/format.js"),
    include_str!("page/colours.js"),
    include_str!("page/flame.js"),
    include_str!("page/profile.js"),
];

/// In place of a function's name: the kernel's code.
const KERNEL: &str = "[kernel]";
/// In place of the callers that could not be unwound.
const CUT: &str = "(callers not known)";
/// In place of a wait that was over before it was read.
const UNSEEN: &str = "not seen: over before a look";

/// What the page says about a profile in words, all of it printable.
#[derive(Debug, Clone, Default)]
pub struct ProfileWords {
    /// What the page is of.
    pub title: String,
    /// The whole in a line.
    pub summary: String,
    /// What could not be had, a line each.
    pub notes: Vec<String>,
}

/// Writes the page. Returns how many bytes it has.
pub(crate) fn write(
    profile: &Profile,
    words: &ProfileWords,
    out: &mut impl Write,
) -> io::Result<u64> {
    let data = Data::of(profile, words);
    let (before, after) = HEAD.split_once("<!-- parts -->").unwrap_or((HEAD, ""));
    let styles = STYLES.concat();
    let scripts = SCRIPTS.concat();
    let parts = [
        before,
        "<style>\n",
        &styles,
        "</style>",
        after,
        "<script type=\"application/json\" id=\"data\">",
        &data,
        "</script>\n<script>\n\"use strict\";\n",
        &scripts,
        "</script>\n</body>\n</html>\n",
    ];
    parts
        .iter()
        .try_for_each(|part| out.write_all(part.as_bytes()))?;
    out.flush()?;
    Ok(parts.iter().map(|part| part.len() as u64).sum())
}

/// The JSON that is being made.
#[derive(Default)]
struct Data {
    out: Vec<u8>,
    names: Texts,
}

impl Data {
    fn of(profile: &Profile, words: &ProfileWords) -> String {
        let mut data = Self::default();
        data.out.push(b'{');
        data.text("title", &words.title);
        data.text("summary", &words.summary);
        data.list("notes", &words.notes, |data, note| {
            json(note, &mut data.out)
        });
        data.stacks(profile);
        data.tables(profile);
        data.key("names");
        let names: Vec<_> = data.names.all().map(<[u8]>::to_vec).collect();
        data.items(&names, |data, name| escape::json(name, &mut data.out));
        data.out.push(b'}');
        // No text may end the element that it stands in.
        String::from_utf8_lossy(&data.out).replace('<', "\\u003c")
    }

    fn stacks(&mut self, profile: &Profile) {
        let kernel = self.names.number(KERNEL.as_bytes());
        let unseen = self.names.number(UNSEEN.as_bytes());
        self.number("kernel", u64::from(kernel));
        self.number("unseen", u64::from(unseen));
        self.number("unseen_ns", profile.unseen_ns);
        let below: u64 = profile.stacks.iter().map(|stack| stack.kernel_ns).sum();
        let kernel_ns = profile.kernel_ns.unwrap_or_default();
        self.number("kernel_rest", kernel_ns.saturating_sub(below));
        self.list("running", &profile.stacks, |data, of| {
            data.push(format!("[{},{},", of.own_ns, of.kernel_ns));
            data.frames(&of.stack, of.is_whole);
            data.out.push(b']');
        });
        self.list("waiting", &profile.waits, |data, of| {
            let purpose = data.names.number(&printable(of.wait.words().as_bytes()));
            data.push(format!(
                "[{},{},{},{purpose},",
                of.ns, of.times, of.longest_ns
            ));
            data.frames(&of.stack, of.is_whole);
            data.out.push(b']');
        });
    }

    /// A stack, the outermost function first.
    fn frames(&mut self, stack: &[std::sync::Arc<Function>], is_whole: bool) {
        let cut = (!is_whole).then(|| self.names.number(CUT.as_bytes()));
        let functions = stack.iter().rev();
        let functions = functions.map(|function| printable(function.name.as_bytes()));
        let names: Vec<_> = functions.map(|name| self.names.number(&name)).collect();
        let all: Vec<_> = cut.into_iter().chain(names).collect();
        self.items(&all, |data, name| data.push(name.to_string()));
    }

    fn tables(&mut self, profile: &Profile) {
        self.list("functions", &profile.functions, |data, of| {
            let (own, running, waiting) = (of.running_self_ns, of.running_ns, of.waiting_ns);
            data.push(format!("[{own},{running},{waiting},"));
            json(&of.function.name, &mut data.out);
            data.out.push(b',');
            json(&of.function.module, &mut data.out);
            data.out.push(b']');
        });
        self.list("threads", &profile.threads, |data, thread| {
            data.push(format!("[{},", thread.tid));
            json(&thread.name, &mut data.out);
            let times = thread.times;
            data.push(format!(
                ",{},{},{}",
                times.running_ns, times.ready_ns, times.waiting_ns
            ));
            let switches = thread.switches.unwrap_or_default();
            data.push(format!(
                ",{},{},{}]",
                switches.waits, switches.longest_wait_ns, switches.preemptions
            ));
        });
    }

    /// Begins a value.
    fn key(&mut self, name: &str) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        self.push(format!("\"{name}\":"));
    }

    fn text(&mut self, name: &str, value: &str) {
        self.key(name);
        json(value, &mut self.out);
    }

    fn number(&mut self, name: &str, value: u64) {
        self.key(name);
        self.push(value.to_string());
    }

    fn list<T>(&mut self, name: &str, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.key(name);
        self.items(items, each);
    }

    fn items<T>(&mut self, items: &[T], each: impl Fn(&mut Self, &T)) {
        self.out.push(b'[');
        for (place, item) in items.iter().enumerate() {
            if place > 0 {
                self.out.push(b',');
            }
            each(self, item);
        }
        self.out.push(b']');
    }

    fn push(&mut self, text: impl AsRef<str>) {
        self.out.extend_from_slice(text.as_ref().as_bytes());
    }
}

/// A text from the process, made safe to show.
fn json(text: &str, out: &mut Vec<u8>) {
    escape::json(&printable(text.as_bytes()), out);
}
