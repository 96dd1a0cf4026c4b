//! The threads of this process, looked at: what they wait for is known to the test, since it made them wait.

use std::cell::UnsafeCell;
use std::hint::black_box;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ringmark_profile::{LOOK_EVERY, Missing, Profile, ProfileError, Profiler, WaitTimes};
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

/// Looks until the profile has what `found` looks for. The runner of the tests limits the time.
fn look_until<T>(profiler: &mut Profiler, found: impl Fn(&Profile) -> Option<T>) -> T {
    loop {
        assert!(profiler.look(), "this process lives");
        if let Some(found) = found(&profiler.profile()) {
            return found;
        }
        thread::sleep(LOOK_EVERY);
    }
}

fn own() -> Profiler {
    Profiler::attach(std::process::id(), 499).expect("this process is there")
}

/// The wait of that kind that has that function in its stack.
fn wait_in(profile: &Profile, call: &str, function: &str) -> Option<WaitTimes> {
    let is_there = |wait: &&WaitTimes| {
        let is_in = |function: &str| wait.stack.iter().any(|of| of.name.ends_with(function));
        wait.wait.call == call && is_in(function)
    };
    profile.waits.iter().find(is_there).cloned()
}

/// A thread with a name, whose number is known.
fn named<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> (u32, JoinHandle<T>) {
    let (tell, told) = channel();
    let body = move || {
        let number = gettid().as_raw_nonzero().get().cast_unsigned();
        tell.send(number).expect("somebody listens");
        work()
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body);
    let thread = thread.expect("a thread");
    (told.recv().expect("its number"), thread)
}

#[inline(never)]
fn read_reply(mut from: PipeReader) -> usize {
    let mut byte = [0];
    black_box(from.read(&mut byte).expect("a pipe"))
}

#[test]
fn a_wait_says_its_call_its_file_and_its_place() {
    let (reader, mut writer) = io::pipe().unwrap();
    let (_, thread) = named("reader", move || read_reply(reader));
    let mut profiler = own();
    let wait = look_until(&mut profiler, |profile| {
        wait_in(profile, "read", "read_reply").filter(|wait| wait.ns > 100_000_000)
    });
    assert!(wait.wait.object.starts_with("pipe:["), "{wait:?}");
    assert!(wait.is_whole, "{wait:?}");
    assert_eq!(wait.times, 1, "it is one wait, however often it is seen");
    assert_eq!(wait.longest_ns, wait.ns);
    writer.write_all(&[1]).unwrap();
    assert_eq!(thread.join().unwrap(), 1);
}

#[inline(never)]
fn read_answer(mut from: TcpStream) -> usize {
    let mut byte = [0];
    black_box(from.read(&mut byte).expect("a stream"))
}

#[test]
fn a_socket_is_named_by_its_ends() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = listener.local_addr().unwrap();
    let stream = TcpStream::connect(place).unwrap();
    let from = stream.local_addr().unwrap();
    let mut accepted = listener.accept().unwrap().0;
    let (_, thread) = named("client", move || read_answer(stream));
    let wait = look_until(&mut own(), |profile| {
        wait_in(profile, "recvfrom", "read_answer")
    });
    assert_eq!(wait.wait.object, format!("tcp {from} to {place}"));
    accepted.write_all(&[1]).unwrap();
    assert_eq!(thread.join().unwrap(), 1);
}

/// A mutex of the C library, which says who has it.
struct Mutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the C library's functions are made for mutexes that threads share.
unsafe impl Sync for Mutex {}

static MUTEX: Mutex = Mutex(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER));

impl Mutex {
    #[inline(never)]
    fn lock(&self) {
        // SAFETY: the mutex is initialised, and lives as long as the process.
        let done = unsafe { libc::pthread_mutex_lock(self.0.get()) };
        assert_eq!(done, 0);
    }

    fn unlock(&self) {
        // SAFETY: as in `lock`; the thread that calls this has it.
        let done = unsafe { libc::pthread_mutex_unlock(self.0.get()) };
        assert_eq!(done, 0);
    }
}

#[inline(never)]
fn take_order() {
    MUTEX.lock();
    MUTEX.unlock();
}

#[test]
fn the_owner_of_a_mutex_is_named() {
    let (reader, mut writer) = io::pipe().unwrap();
    let (has_it, takes_it) = channel();
    let (owner, holder) = named("holder", move || {
        MUTEX.lock();
        has_it.send(()).expect("somebody listens");
        read_reply(reader);
        MUTEX.unlock();
    });
    takes_it.recv().unwrap();
    let (_, waiter) = named("waiter", take_order);
    let wait = look_until(&mut own(), |profile| {
        wait_in(profile, "futex", "take_order")
    });
    assert_eq!(wait.wait.object, format!("mutex of holder[{owner}]"));
    writer.write_all(&[1]).unwrap();
    holder.join().unwrap();
    waiter.join().unwrap();
}

/// Runs for that long by the clock of the thread's own processor time.
#[inline(never)]
fn spin_most(time: Duration) {
    spin(time);
}

#[inline(never)]
fn spin_rest(time: Duration) {
    spin(time);
}

#[inline(always)]
fn spin(time: Duration) {
    let end = ran() + time;
    let mut sum = 0_u64;
    while ran() < end {
        for n in 0..200_000_u64 {
            sum = black_box(sum.wrapping_add(n));
        }
    }
}

/// How long this thread has run.
fn ran() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

static ENDS: AtomicBool = AtomicBool::new(false);

#[test]
fn what_runs_is_sampled_in_proportion() {
    let (_, thread) = named("spinner", || {
        while !ENDS.load(Relaxed) {
            spin_most(Duration::from_millis(30));
            spin_rest(Duration::from_millis(10));
        }
    });
    let mut profiler = own();
    let own_ns = |profile: &Profile, name: &str| {
        let of = profile.functions.iter();
        let mut of = of.filter(|times| times.function.name.ends_with(name));
        of.next().map_or(0, |times| times.running_ns)
    };
    let (most, rest) = look_until(&mut profiler, |profile| {
        if let Some(Missing::Running(why)) = profile.missing.first() {
            println!("left out: samples are refused here: {why}");
            return Some((3, 1));
        }
        let both = (
            own_ns(profile, "::spin_most"),
            own_ns(profile, "::spin_rest"),
        );
        (profile.samples >= 600).then_some(both)
    });
    ENDS.store(true, Relaxed);
    thread.join().unwrap();
    let share = most as f64 / (most + rest) as f64;
    assert!(
        (0.65..0.85).contains(&share),
        "{share} of the time, expected 3/4"
    );
}

/// A thread that works when it is told to, and says how long it ran.
fn worker(steps: PipeReader, tell: Sender<Duration>) -> (u32, JoinHandle<()>) {
    named("worker", move || {
        let mut steps = steps;
        let mut byte = [0];
        while steps.read(&mut byte).is_ok_and(|came| came == 1) {
            spin(Duration::from_millis(byte[0].into()));
            tell.send(ran()).expect("somebody listens");
        }
    })
}

#[test]
fn times_of_a_thread_are_those_of_its_clock_and_make_up_the_whole() {
    let (steps, mut say) = io::pipe().unwrap();
    let (tell, told) = channel();
    let (tid, thread) = worker(steps, tell);
    let work = |say: &mut PipeWriter, ms: u8| {
        say.write_all(&[ms]).unwrap();
        told.recv().unwrap()
    };
    let before = work(&mut say, 1);
    let mut profiler = own();
    let mut after = before;
    for _ in 0..10 {
        after = work(&mut say, 20);
        assert!(profiler.look());
    }
    let expected = (after - before).as_nanos() as u64;
    // Going to sleep and waking up are the thread's, too, and not in its own measure.
    let near = expected - 1_000_000..expected + expected / 20 + 2_000_000;
    let profile = look_until(&mut profiler, |profile| {
        let thread = profile.threads.iter().find(|thread| thread.tid == tid)?;
        (thread.times.running_ns >= near.start).then(|| profile.clone())
    });
    let thread_times = profile.threads.iter().find(|thread| thread.tid == tid);
    let times = thread_times.expect("it lives").times;
    // Waking up and going to sleep are the thread's, too, and not in its own measure.
    let (found, expected) = (times.running_ns, (after - before).as_nanos() as u64);
    assert!(
        found < expected + expected / 20 + 2_000_000,
        "{found} of {expected}"
    );
    let sum = times.running_ns + times.ready_ns + times.waiting_ns;
    assert!(sum <= profile.ns, "{sum} of {}", profile.ns);
    drop(say);
    thread.join().unwrap();
    // What has ended is in the sums.
    let ended = look_until(&mut profiler, |profile| {
        let thread = profile.threads.iter().find(|thread| thread.tid == tid)?;
        Some(thread.times.running_ns)
    });
    assert!(ended >= found);
}

#[test]
fn a_thread_that_names_itself_later_has_its_new_name() {
    let (reader, mut writer) = io::pipe().unwrap();
    let (go, goes) = channel::<()>();
    let (tid, thread) = named("before", move || {
        goes.recv().expect("somebody tells");
        rustix::thread::set_name(c"after").expect("a name");
        read_reply(reader)
    });
    let mut profiler = own();
    let name = |profile: &Profile| {
        let thread = profile.threads.iter().find(|thread| thread.tid == tid)?;
        Some(thread.name.clone())
    };
    assert_eq!(look_until(&mut profiler, name), "before");
    go.send(()).unwrap();
    look_until(&mut profiler, |profile| {
        name(profile).filter(|name| name == "after")
    });
    writer.write_all(&[1]).unwrap();
    assert_eq!(thread.join().unwrap(), 1);
}

#[test]
fn a_process_that_is_not_there_is_refused() {
    // Beyond the largest number that a kernel gives out.
    let refused = Profiler::attach(4_194_305, 99).err();
    assert!(matches!(
        refused,
        Some(ProfileError::NoProcess { pid: 4_194_305, .. })
    ));
}
