//! Functions, methods, generic ones, those of traits and of a module, on small and large frames.

use std::num::ParseIntError;

use crate::count::Count;

/// In the order of the numbers that [`count`] takes.
pub(crate) static COUNTS: [Count; 16] = [
    Count::new("all"),
    Count::new("questions"),
    Count::new("leaves_early"),
    Count::new("generic"),
    Count::new("method"),
    Count::new("by_value"),
    Count::new("provided"),
    Count::new("required"),
    Count::new("in_module"),
    Count::new("deeper"),
    Count::new("recurses"),
    Count::new("last_call"),
    Count::new("large_frame"),
    Count::new("aligned_frame"),
    Count::new("falls"),
    Count::new("catches"),
];

fn count(number: usize) {
    COUNTS[number].add();
}

/// Calls all others.
#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
pub(crate) fn all(n: u64) -> u64 {
    count(0);
    let shape = Shape { side: n };
    let mut sum = questions("12").unwrap_or(0) + questions("x").map_or(1, |n| n);
    sum += leaves_early(n) + leaves_early(n + 1);
    sum += u64::from(generic(n as u8)) + generic([n; 9])[8] + generic(n);
    sum += shape.method(3) + shape.provided() + shape.required();
    sum += module::in_module(n) + module::below::deeper(n) + recurses(n % 50);
    sum += last_call(n % 50, 0) + large_frame(n) + aligned_frame(n) + catches(n % 10);
    sum + shape.by_value()
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn questions(text: &str) -> Result<u64, ParseIntError> {
    count(1);
    let number: u64 = text.parse()?;
    Ok(number + 1)
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn leaves_early(n: u64) -> u64 {
    count(2);
    if n.is_multiple_of(2) {
        return 5;
    }
    (0..n % 10).map(|i| i * n).sum()
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
#[inline]
fn generic<T: Copy>(value: T) -> T {
    #![allow(clippy::clone_on_copy)]
    count(3);
    value.clone()
}

struct Shape {
    side: u64,
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
impl Shape {
    const CORNERS: u64 = Self::untraced();

    const fn untraced() -> u64 {
        4
    }

    fn method(&self, by: u64) -> u64 {
        count(4);
        self.side * by + Self::CORNERS
    }

    fn by_value(self) -> u64 {
        count(5);
        self.side
    }
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
trait Form {
    fn required(&self) -> u64;

    fn provided(&self) -> u64 {
        count(6);
        self.required() + 1
    }
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
impl Form for Shape {
    fn required(&self) -> u64 {
        count(7);
        self.side ^ 0x55
    }
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
mod module {
    use super::count;

    pub(super) fn in_module(n: u64) -> u64 {
        count(8);
        not_traced(n) + 1
    }

    #[ringmark::notrace]
    #[inline(never)]
    fn not_traced(n: u64) -> u64 {
        n / 2
    }

    pub(super) mod below {
        use super::count;

        pub(crate) fn deeper(n: u64) -> u64 {
            count(9);
            super::in_module(n) * 2
        }
    }
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn recurses(n: u64) -> u64 {
    count(10);
    if n == 0 { 0 } else { n ^ recurses(n - 1) }
}

/// Its last call may become a jump, or a loop around the site.
#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn last_call(n: u64, sum: u64) -> u64 {
    count(11);
    if n == 0 {
        sum
    } else {
        last_call(n - 1, sum + n)
    }
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn large_frame(n: u64) -> u64 {
    count(12);
    let mut words = [n; 5000];
    std::hint::black_box(&mut words);
    words[4999] + generic(words[17])
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Aligned([u64; 8]);

/// Its frame is found by the frame pointer only.
#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn aligned_frame(n: u64) -> u64 {
    count(13);
    let line = Aligned([n; 8]);
    assert!(
        std::ptr::from_ref(std::hint::black_box(&line))
            .addr()
            .is_multiple_of(64)
    );
    line.0[3] + recurses(n % 3)
}

/// Panics so deep down.
#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
pub(crate) fn falls(n: u64) -> u64 {
    count(14);
    let held = n.to_string();
    assert!(n > 0, "at the bottom");
    falls(n - 1) + held.len() as u64
}

#[cfg_attr(feature = "attribute", ringmark::trace_fn)]
fn catches(n: u64) -> u64 {
    count(15);
    let caught = std::panic::catch_unwind(|| falls(n));
    recurses(3) + u64::from(caught.is_err())
}
