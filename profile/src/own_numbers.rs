//! Threads by the numbers that their own process has for them: where it has a pid namespace of its own, these are others
//! than ours.

use std::collections::HashMap;

use crate::target::Target;

/// The numbers of a process's threads.
#[derive(Debug)]
pub(crate) struct OwnNumbers {
    /// By our number; `None`: the thread had ended before it was asked for. Not used where both are the same.
    known: HashMap<u32, Option<u32>>,
    are_ours: bool,
}

impl OwnNumbers {
    /// Those of a process.
    pub(crate) fn of(target: &Target) -> Self {
        let status = target.text("status").unwrap_or_default();
        Self {
            are_ours: numbers(&status).is_none_or(|numbers| numbers.len() < 2),
            known: HashMap::new(),
        }
    }

    /// The number that a thread has there. One that has ended gives its number back.
    pub(crate) fn own(&mut self, target: &Target, tid: u32, has_ended: bool) -> Option<u32> {
        if self.are_ours {
            return Some(tid);
        }
        let known = self.known.remove(&tid).unwrap_or_else(|| {
            let status = target.text(&format!("task/{tid}/status")).ok()?;
            numbers(&status)?.pop()
        });
        if !has_ended {
            self.known.insert(tid, known);
        }
        known
    }
}

/// The numbers of a thread in all pid namespaces that it is seen in, ours first.
fn numbers(status: &str) -> Option<Vec<u32>> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("NSpid:"))?;
    let numbers = line.split_ascii_whitespace();
    numbers.map(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::{OwnNumbers, numbers};
    use crate::target::Target;

    #[test]
    fn numbers_are_read() {
        let status = "Name:\ta\nNSpid:\t4711\t12\nThreads:\t2\n";
        assert_eq!(numbers(status), Some(vec![4711, 12]));
        assert_eq!(numbers("Name:\ta\n"), None);
        assert_eq!(numbers("NSpid:\tx\n"), None);
    }

    #[test]
    fn our_own_threads_have_our_numbers() {
        let target = Target::open(std::process::id()).unwrap();
        let mut numbers = OwnNumbers::of(&target);
        assert_eq!(numbers.own(&target, 77, false), Some(77));
    }
}
