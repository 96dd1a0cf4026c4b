//! How a session ended: in words, and as the content of an ENDING block.

use core::fmt;

layout! {
    /// Content of an ENDING block: how the session ended, as far as its reader knew.
    pub struct EndingBlock: 24 {
        /// See [`how`].
        0 how: u32,
        /// EXITED: the status, 0 to 255. KILLED: the number of the signal. Else 0.
        4 code: u32,
        /// KILLED: bit 0, a core was dumped ([`CORE`]); bit 1, the kernel was out of memory ([`MEMORY`]).
        8 flags: u32,
        /// Zero.
        12 reserved: u32,
        /// Tick at which a reader that had watched the living process found it dead; 0: none had.
        16 seen_tick: u64,
    }
}

/// Values of [`EndingBlock::how`].
pub mod how {
    /// The process exited with a status.
    pub const EXITED: u32 = 1;
    /// A signal ended the process.
    pub const KILLED: u32 = 2;
    /// The program closed its session and went on.
    pub const CLOSED: u32 = 3;
    /// The process became another program (`exec`).
    pub const REPLACED: u32 = 4;
    /// Not known: the process was gone before it was looked at.
    pub const GONE: u32 = 5;
    /// Not known: the kernel does not tell it to other processes than the parent.
    pub const UNTOLD: u32 = 6;
}

/// Flag of [`EndingBlock::flags`]: a core was dumped.
pub const CORE: u32 = 1;
/// Flag of [`EndingBlock::flags`]: the kernel had counted a kill for lack of memory.
pub const MEMORY: u32 = 2;

/// How a session ended. Its text is what a person reads: `exit status 1`, `ended by SIGSEGV`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// The process exited with this status.
    Exited(u8),
    /// A signal ended the process.
    Killed {
        /// Number of the signal, from 1.
        signal: u8,
        /// Whether a core was dumped.
        core: bool,
        /// Whether its control group counted a kill for lack of memory at that time.
        memory: bool,
    },
    /// The program closed its session and went on.
    Closed,
    /// The process became another program.
    Replaced,
    /// Not known: the process was gone before it was looked at, and its ring file does not say.
    Gone,
    /// Not known: this kernel tells no process but the parent.
    Untold,
}

impl Ending {
    /// The end that a wait status tells, as `wait` gives it. `None`: it tells of no end.
    #[must_use]
    pub const fn of_wait_status(status: i32) -> Option<Self> {
        let signal = (status & 0x7F) as u8;
        match signal {
            0 => Some(Self::Exited((status >> 8 & 0xFF) as u8)),
            0x7F => None,
            _ => Some(Self::Killed {
                signal,
                core: status & 0x80 != 0,
                memory: false,
            }),
        }
    }

    /// The content of a block as it was read. `None`: a kind of end that this version does not know.
    #[must_use]
    pub const fn of_block(block: &EndingBlock) -> Option<Self> {
        Some(match block.how {
            how::EXITED => Self::Exited(block.code as u8),
            how::KILLED => Self::Killed {
                signal: block.code as u8,
                core: block.flags & CORE != 0,
                memory: block.flags & MEMORY != 0,
            },
            how::CLOSED => Self::Closed,
            how::REPLACED => Self::Replaced,
            how::GONE => Self::Gone,
            how::UNTOLD => Self::Untold,
            _ => return None,
        })
    }

    /// The content of its block, but for the tick at which it was seen.
    #[must_use]
    pub const fn block(self) -> EndingBlock {
        let (how, code, flags) = match self {
            Self::Exited(status) => (how::EXITED, status, 0),
            Self::Killed {
                signal,
                core,
                memory,
            } => {
                let core = if core { CORE } else { 0 };
                (how::KILLED, signal, core | if memory { MEMORY } else { 0 })
            }
            Self::Closed => (how::CLOSED, 0, 0),
            Self::Replaced => (how::REPLACED, 0, 0),
            Self::Gone => (how::GONE, 0, 0),
            Self::Untold => (how::UNTOLD, 0, 0),
        };
        EndingBlock {
            how,
            code: code as u32,
            flags,
            reserved: 0,
            seen_tick: 0,
        }
    }

    /// One word for machines: `exit`, `signal`, `closed`, `exec` or `unknown`.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exited(_) => "exit",
            Self::Killed { .. } => "signal",
            Self::Closed => "closed",
            Self::Replaced => "exec",
            Self::Gone | Self::Untold => "unknown",
        }
    }

    /// Status of the exit, 0 to 255; `None`: it was no exit, or the end is not known.
    #[must_use]
    pub const fn status(self) -> Option<u8> {
        match self {
            Self::Exited(status) => Some(status),
            _ => None,
        }
    }

    /// Number of the signal, from 1; `None`: it was none, or the end is not known.
    #[must_use]
    pub const fn signal(self) -> Option<u8> {
        match self {
            Self::Killed { signal, .. } => Some(signal),
            _ => None,
        }
    }

    /// Whether nothing went wrong, as far as this tells: status 0, or the process went on.
    #[must_use]
    pub const fn is_clean(self) -> bool {
        matches!(self, Self::Exited(0) | Self::Closed | Self::Replaced)
    }

    /// Whether it is known how the session ended.
    #[must_use]
    pub const fn is_known(self) -> bool {
        !matches!(self, Self::Gone | Self::Untold)
    }
}

/// Name of a signal of Linux on this processor, such as `SIGSEGV`; `None`: it has no name.
#[must_use]
pub fn signal_name(signal: u8) -> Option<&'static str> {
    const NAMES: [&str; 31] = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    NAMES.get(usize::from(signal).checked_sub(1)?).copied()
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited(status) => write!(f, "exit status {status}"),
            Self::Killed {
                signal,
                core,
                memory,
            } => {
                match signal_name(signal) {
                    Some(name) => write!(f, "ended by {name}")?,
                    None => write!(f, "ended by signal {signal}")?,
                }
                if memory {
                    f.write_str(", its control group was out of memory")?;
                }
                f.write_str(if core { " (core dumped)" } else { "" })
            }
            Self::Closed => f.write_str("session closed by the program"),
            Self::Replaced => f.write_str("became another program (exec)"),
            Self::Gone => f.write_str("ended: not known, it was gone before it was looked at"),
            Self::Untold => f.write_str("ended: not known, no status on this kernel"),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_ending_comes_back_from_its_block() {
        let killed = |signal, core, memory| Ending::Killed {
            signal,
            core,
            memory,
        };
        let all = (0..=255).map(Ending::Exited);
        let all = all.chain((1..=64).flat_map(|signal| {
            [(false, false), (true, false), (false, true), (true, true)]
                .map(|(core, memory)| killed(signal, core, memory))
        }));
        let rest = [
            Ending::Closed,
            Ending::Replaced,
            Ending::Gone,
            Ending::Untold,
        ];
        for ending in all.chain(rest) {
            assert_eq!(Ending::of_block(&ending.block()), Some(ending));
        }
        for how in [0, 7, u32::MAX] {
            let block = EndingBlock {
                how,
                ..Ending::Closed.block()
            };
            assert_eq!(Ending::of_block(&block), None, "{how}");
        }
    }

    #[test]
    fn a_wait_status_is_told_in_words() {
        for (status, text) in [
            (0, "exit status 0"),
            (0x200, "exit status 2"),
            (0xFF00, "exit status 255"),
            (11, "ended by SIGSEGV"),
            (0x86, "ended by SIGABRT (core dumped)"),
            (9, "ended by SIGKILL"),
            (31, "ended by SIGSYS"),
            (34, "ended by signal 34"),
        ] {
            let ending = Ending::of_wait_status(status).expect("an end");
            assert_eq!(ending.to_string(), text);
            assert!(ending.is_known());
            assert_eq!(ending.is_clean(), status == 0);
        }
        // Stopped, and continued.
        assert_eq!(Ending::of_wait_status(0x137F), None);
        assert_eq!(Ending::of_wait_status(0xFFFF), None);
    }
}
