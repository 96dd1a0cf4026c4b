//! Looks at a process, and collects what it sees.

use std::io;
use std::time::{Duration, Instant};

use crate::code::Code;
use crate::error::ProfileError;
use crate::looker::Looker;
use crate::profile::{Missing, Profile, Sampled};
use crate::sampler::{Kernel, Samples};
use crate::target::Target;

/// Time between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Looks at a process.
pub struct Profiler {
    target: Target,
    name: String,
    code: Code,
    looker: Looker,
    /// What runs is sampled; else why not.
    samples: Result<Samples, io::Error>,
    sampled: Sampled,
    hertz: u64,
    begun: Instant,
}

impl Profiler {
    /// Begins to look at a process, and to sample what it runs `hertz` times in each second that it runs.
    ///
    /// # Errors
    /// There is no such process.
    pub fn attach(pid: u32, hertz: u64) -> Result<Self, ProfileError> {
        let target = Target::open(pid)?;
        let name = target.name_of(None).unwrap_or_default();
        let samples = Samples::begin(&target, hertz);
        let code = Code::of(&target);
        let mut profiler = Self {
            target,
            name,
            code,
            looker: Looker::new(),
            samples,
            sampled: Sampled::default(),
            hertz,
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
        if std::mem::take(&mut self.looker.has_new_program) {
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
                *sampled.stacks.entry(stack).or_default() += 1;
            }
        });
    }

    /// What was seen so far.
    pub fn profile(&mut self) -> Profile {
        self.looker.look_at_all(&self.target, &mut self.code);
        self.take_samples();
        let threads = self.looker.threads();
        let missing = self.missing();
        let ns = u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let sample_ns = match &self.samples {
            Ok(samples) => {
                let is_whole = samples.kernel == Kernel::Included;
                Some((1_000_000_000 / self.hertz.max(1), is_whole))
            }
            Err(_) => None,
        };
        Profile::of(
            ns,
            threads,
            self.looker.places(),
            &self.sampled,
            sample_ns,
            &self.code,
            missing,
        )
    }

    fn missing(&self) -> Vec<Missing> {
        let mut missing = Vec::new();
        match &self.samples {
            Err(error) => missing.push(Missing::Running(error.to_string())),
            Ok(samples) => {
                if samples.kernel == Kernel::Excluded {
                    missing.push(Missing::Kernel);
                }
                if samples.threads_left_out > 0 {
                    missing.push(Missing::Threads(samples.threads_left_out));
                }
                if samples.lost > 0 {
                    missing.push(Missing::Samples(samples.lost));
                }
            }
        }
        if self.looker.is_refused {
            missing.push(Missing::Waits);
        } else if !self.target.can_read_memory() {
            missing.push(Missing::Stacks);
        }
        if self.code.is_empty() {
            missing.push(Missing::Code);
        }
        missing
    }
}
