//! Three functions that take about 70, 20 and 10 % of the time: as `c/shares.c`, in Rust. `shares SECONDS FILE`.

use std::hint::black_box;
use std::io::{self, Read};

use rustix::time::{ClockId, clock_gettime};

/// How long this thread has run, in ns.
fn ran() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[inline(never)]
fn seventy(n: u64) -> u64 {
    (0..n).fold(0_u64, |sum, i| {
        black_box(sum.wrapping_mul(31).wrapping_add(i))
    })
}

#[inline(never)]
fn twenty(n: u64) -> u64 {
    (0..n).fold(0_u64, |sum, i| {
        black_box(sum.wrapping_mul(37).wrapping_add(i))
    })
}

struct Rest;

impl Rest {
    #[inline(never)]
    fn ten(&self, n: u64) -> u64 {
        (0..n).fold(0_u64, |sum, i| {
            black_box(sum.wrapping_mul(41).wrapping_add(i))
        })
    }
}

/// Some ms in a row, of lengths that go with no clock.
fn turn(unit: u64, took: &mut [u64; 3]) {
    let mut before = ran();
    let mut time = |part: usize| {
        let now = ran();
        took[part] += now - before;
        before = now;
    };
    black_box(seventy(7 * unit));
    time(0);
    black_box(twenty(2 * unit));
    time(1);
    black_box(Rest.ten(unit));
    time(2);
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(seconds), Some(file)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("usage: shares SECONDS FILE"));
    };
    let seconds: f64 = seconds.parse().map_err(io::Error::other)?;
    io::stdin().read_line(&mut String::new())?;
    let end = ran() + (seconds * 1e9) as u64;
    let (mut took, mut random) = ([0; 3], 1_u64);
    while ran() < end {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        turn(100_000 + (random >> 33) % 400_000, &mut took);
    }
    let part = format!("{file}.part");
    std::fs::write(&part, format!("{} {} {}\n", took[0], took[1], took[2]))?;
    std::fs::rename(part, file)?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
