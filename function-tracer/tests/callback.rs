//! A closure of a Rust program is called at each entry of the functions that were chosen.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, Ordering};

use ringmark_function_tracer::{Callback, control};

// A function with a site, as compilers make them: returns its argument and one.
core::arch::global_asm!(
    ".pushsection .text.ringmark_test_called,\"ax\",@progbits",
    ".globl ringmark_test_called",
    ".type ringmark_test_called,@function",
    "ringmark_test_called:",
    "1:",
    ".byte 0x0f, 0x1f, 0x44, 0, 0",
    "lea rax, [rdi + 1]",
    "ret",
    ".size ringmark_test_called, .-ringmark_test_called",
    ".popsection",
    ".pushsection __patchable_function_entries,\"awo\",@progbits,ringmark_test_called",
    ".balign 8",
    ".quad 1b",
    ".popsection",
);

unsafe extern "C" {
    fn ringmark_test_called(number: u64) -> u64;
}

const THREADS: u64 = 4;
const CALLS: u64 = 1000;

fn call(number: u64) -> u64 {
    // SAFETY: a function that takes and returns a number.
    unsafe { ringmark_test_called(number) }
}

fn call_all() {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..CALLS).for_each(|n| assert_eq!(call(n), n + 1)));
        }
    });
}

#[test]
fn closures_are_called_until_they_are_taken_away() {
    let ask = |text: &str| control::answer(text).unwrap();
    let counts = Arc::new([const { AtomicU64::new(0) }; 2]);
    let mine = Arc::clone(&counts);
    let start = ringmark_test_called as *const () as u64;
    let entered = move |function: u64, caller: u64| {
        let is_right = (1..16).contains(&function.wrapping_sub(start)) && caller != 0;
        mine[0].fetch_add(u64::from(is_right), Relaxed);
        mine[1].fetch_add(call(7), Relaxed); // Traced, but not again.
    };
    control::set_callback("mine", Some(Callback::new(entered))).unwrap();
    let taken = || {
        let [calls, inside] = [0, 1].map(|n| counts[n].swap(0, Ordering::Relaxed));
        assert_eq!(inside, 8 * calls);
        calls
    };
    call_all();
    assert_eq!(taken(), 0, "it is off");
    let said = ask("trace start\ntracer=mine\nfilter=ringmark_test_called");
    assert!(
        said.starts_with("matched=1\npatched=1\nopen=1\nrefused=0\n"),
        "{said}"
    );
    call_all();
    assert_eq!(taken(), THREADS * CALLS);
    assert!(ask("trace status").contains(&format!("not_called={}\n", THREADS * CALLS)));
    // It pauses where it is triggered to.
    ask("trace trigger\ntracer=mine\ntrigger=ringmark_test_called:exit=stop");
    assert_eq!(call(1) + call(1), 4);
    assert_eq!(taken(), 1, "the first one's end stops it");
    ask("trace trigger\ntracer=mine\ntrigger=none");
    // A panic ends in the callback, which is called again.
    std::panic::set_hook(Box::new(|_| ()));
    let mine = Arc::clone(&counts);
    let panics = move |_, _| {
        mine[0].fetch_add(1, Relaxed);
        mine[1].fetch_add(8, Relaxed);
        panic!("of the program's own");
    };
    control::set_callback("mine", Some(Callback::new(panics))).unwrap();
    call_all();
    assert_eq!(taken(), THREADS * CALLS);
    control::set_callback("mine", None).unwrap();
    call_all();
    assert_eq!(taken(), 0, "taken away");
    let error = control::set_callback("graph", None).unwrap_err();
    assert_eq!(error.to_string(), "the tracer \"graph\" is of kind graph");
}
