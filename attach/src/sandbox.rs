//! What a thread's seccomp filters say of all system calls that loading and tracing make.

use std::collections::HashSet;
use std::io;

use crate::filter::{self, Instruction, Verdict};
use crate::system_calls::{CLONE, Need, SYSTEM_CALLS, SystemCall};

/// What was found out about filters.
#[derive(Debug)]
pub(crate) struct Sandbox {
    /// The library or the ring file is a memfd.
    needs_memfd: bool,
    /// Filters that allow what is needed. Most threads have the same.
    allowing: HashSet<Vec<Vec<Instruction>>>,
}

impl Sandbox {
    pub(crate) fn new(needs_memfd: bool) -> Self {
        Self {
            needs_memfd,
            allowing: HashSet::new(),
        }
    }

    /// The reason why a thread with these filters cannot be used.
    pub(crate) fn obstacle(&mut self, filters: Vec<Vec<Instruction>>) -> Option<String> {
        if self.allowing.contains(&filters) {
            return None;
        }
        let found = SYSTEM_CALLS
            .iter()
            .find_map(|call| self.refusal(&filters, call));
        if found.is_none() {
            self.allowing.insert(filters);
        }
        found
    }

    fn refusal(&self, filters: &[Vec<Instruction>], call: &SystemCall) -> Option<String> {
        const ADVICE: &str = "allow that call there, or start the program with 'ringmark run'";
        let verdict = filter::verdict(filters, &call.asked());
        let name = call.name;
        let what = match verdict {
            Verdict::Allowed => return None,
            Verdict::Fails(error) if error != 0 && !self.is_needed(call.need) => return None,
            Verdict::Fails(error)
                if call.need == Need::UnlessClone && error == libc::ENOSYS.cast_unsigned() =>
            {
                return self.refusal(filters, &CLONE);
            }
            Verdict::Fails(0) => format!("takes {name} away without an error"),
            Verdict::Fails(error) => {
                let error = io::Error::from_raw_os_error(error.cast_signed());
                format!("refuses {name} ({error})")
            }
            Verdict::Kills => format!("kills for {name}"),
            Verdict::AsksOther => format!("has another process decide about {name}"),
            Verdict::Looks(number) => {
                format!("looks at argument {number} of {name}, which is not known before")
            }
            Verdict::Unknown => format!("cannot be followed for {name}"),
        };
        Some(format!(
            "its filter {what}, which loading the function tracer needs; {ADVICE}"
        ))
    }

    fn is_needed(&self, need: Need) -> bool {
        match need {
            Need::Always | Need::UnlessClone => true,
            Need::Memfd => self.needs_memfd,
            Need::Never => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(code: u16, if_true: u8, if_false: u8, k: u32) -> Instruction {
        Instruction {
            code,
            if_true,
            if_false,
            k,
        }
    }

    /// A filter that does `what` to a call and allows the others.
    fn for_call(number: u32, what: u32) -> Vec<Vec<Instruction>> {
        vec![vec![
            line(0x20, 0, 0, 0),
            line(0x15, 0, 1, number),
            line(0x06, 0, 0, what),
            line(0x06, 0, 0, 0x7fff_0000),
        ]]
    }

    const FAILS: u32 = 0x0005_0000;

    #[test]
    fn each_needed_call_is_named() {
        for call in SYSTEM_CALLS {
            let of =
                |what, needs_memfd| Sandbox::new(needs_memfd).obstacle(for_call(call.number, what));
            // Whatever kills is refused; so is a call that seems to have worked.
            for what in [0, 0x8000_0000, 0x0003_0000, 0x7fc0_0000, FAILS] {
                let found = of(what, false).expect("an obstacle");
                assert!(found.contains(call.name), "{found}");
            }
            // Calls that are listed twice may be needed once.
            let same = || SYSTEM_CALLS.iter().filter(|one| one.number == call.number);
            let is_needed = same().any(|one| matches!(one.need, Need::Always | Need::UnlessClone));
            let with_memfd = is_needed || same().any(|one| one.need == Need::Memfd);
            assert_eq!(of(FAILS | 1, false).is_some(), is_needed, "{}", call.name);
            assert_eq!(of(FAILS | 1, true).is_some(), with_memfd, "{}", call.name);
        }
    }

    #[test]
    fn clone_stands_in_for_clone3() {
        let of = |filters| Sandbox::new(false).obstacle(filters);
        let enosys = FAILS | libc::ENOSYS.cast_unsigned();
        assert_eq!(of(for_call(435, enosys)), None);
        assert!(of(for_call(435, FAILS | 1)).is_some_and(|why| why.contains("clone3 (")));
        let mut both = for_call(435, enosys);
        both.extend(for_call(56, FAILS | 1));
        assert!(of(both).is_some_and(|why| why.contains("refuses clone (")));
    }
}
