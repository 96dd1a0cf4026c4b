//! Looks at a process, and collects what it sees.

use std::io;
use std::time::{Duration, Instant};

use crate::code::Code;
use crate::descriptors::Descriptors;
use crate::error::ProfileError;
use crate::looker::Looker;
use crate::profile::{Missing, Profile, Sampled};
use crate::sampler::{Kernel, Noted, Samples};
use crate::schedule::mono_ns;
use crate::target::Target;

/// Time between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// So many threads that come and go are worth a word.
const BRIEF_THREADS: u64 = 20;

/// Looks at a process.
pub struct Profiler {
    target: Target,
    name: String,
    code: Code,
    looker: Looker,
    /// What runs is sampled; else why not.
    samples: Result<Samples, io::Error>,
    sampled: Sampled,
    begun: Instant,
}

impl Profiler {
    /// Begins to look at a process, and to sample what it runs `hertz` times in each second that it runs. Each
    /// thread takes a descriptor, and one for each processor: the limit of this process is best raised before.
    ///
    /// # Errors
    /// There is no such process.
    pub fn attach(pid: u32, hertz: u64) -> Result<Self, ProfileError> {
        let target = Target::open(pid)?;
        let name = target.name_of(None).unwrap_or_default();
        let descriptors = Descriptors::now();
        let samples = Samples::begin(&target, hertz, (descriptors, Noted::Switches));
        let each = samples.as_ref().ok().map(|samples| {
            let has_kernel = samples.kernel == Kernel::Included;
            (samples.period_ns, has_kernel)
        });
        let code = Code::of(&target);
        let mut profiler = Self {
            target,
            name,
            code,
            looker: Looker::new(descriptors),
            samples,
            sampled: Sampled {
                each,
                ..Sampled::default()
            },
            begun: Instant::now(),
        };
        profiler.look();
        Ok(profiler)
    }

    /// The name of the process, by the program that it runs now.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Looks at all threads once; returns whether the process lives.
    pub fn look(&mut self) -> bool {
        let lives = self.looker.look(&self.target, &mut self.code);
        // One that ends has no memory any more, as one that executes another program has not for a moment.
        if std::mem::take(&mut self.looker.has_new_program) && self.target.has_memory() {
            self.target.open_memory();
            self.code.begin_again(&self.target);
            self.name = self.target.name_of(None).unwrap_or_default();
        }
        self.take_samples();
        lives
    }

    fn take_samples(&mut self) {
        let Ok(samples) = &mut self.samples else {
            return;
        };
        let (code, target, sampled) = (&mut self.code, &self.target, &mut self.sampled);
        samples.take(|sample| {
            sampled.all += 1;
            sampled.in_kernel += u64::from(sample.is_in_kernel);
            if let Some(registers) = sample.registers {
                let stack = code.unwind(target, registers, sample.stack);
                let of_stack = sampled.stacks.entry(stack).or_default();
                match sample.is_in_kernel {
                    true => of_stack.in_kernel += 1,
                    false => of_stack.own += 1,
                }
            }
        });
        self.sampled.lost = samples.lost;
        self.sampled.left_out.clone_from(samples.left_out());
    }

    /// What was seen so far.
    pub fn profile(&mut self) -> Profile {
        self.looker.look_at_all(&self.target, &mut self.code);
        self.take_samples();
        let missing = self.missing();
        let ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let now = mono_ns();
        let samples = self.samples.as_ref().ok();
        // One that was lost may be a switch.
        let samples = samples.filter(|samples| samples.lost == 0);
        let switches = |tid| samples?.switches.of(tid, now);
        let (looker, sampled) = (&mut self.looker, &self.sampled);
        Profile::of(ns, looker, sampled, switches, &self.code, missing)
    }

    fn missing(&self) -> Vec<Missing> {
        let mut missing = Vec::new();
        match &self.samples {
            Err(error) => missing.push(Missing::Running(error.to_string())),
            Ok(samples) => {
                if samples.kernel == Kernel::Excluded {
                    missing.push(Missing::Kernel);
                }
                if !samples.left_out().is_empty() {
                    missing.push(Missing::ThreadsRunning(samples.left_out().len() as u64));
                }
                if samples.lost > 0 {
                    missing.push(Missing::Samples(samples.lost));
                }
            }
        }
        if self.looker.brief_threads >= BRIEF_THREADS && self.samples.is_ok() {
            missing.push(Missing::BriefThreads(self.looker.brief_threads));
        }
        if self.looker.threads_left_out > 0 {
            missing.push(Missing::Threads(self.looker.threads_left_out));
        }
        if self.looker.is_refused {
            missing.push(Missing::Waits);
        } else if !self.target.can_read_memory() {
            missing.push(Missing::Stacks);
        }
        let has_stacks = self.samples.is_ok() || self.target.can_read_memory();
        if self.code.is_empty() && has_stacks {
            missing.push(Missing::Code);
        }
        missing
    }
}
