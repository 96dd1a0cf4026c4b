//! The machine code of the event path on aarch64, of objects that `./test --full arm` has built: what it must
//! and must not hold, and golden files of it. Objects, because in them nothing is of the linker's choice.

use std::env;
use std::path::PathBuf;

use ringmark_tests::code::{Instruction, Processor, compare_with_golden_of, disassemble_of};

const EVENTS: [&str; 3] = [
    "hot_path_event_u64",
    "hot_path_event_empty",
    "hot_path_event_mixed",
];

/// What the step has built, by its name.
fn built(name: &str) -> PathBuf {
    let dir = env::var_os("RINGMARK_ARM").expect("./test --full arm runs this test");
    PathBuf::from(dir).join(name)
}

fn code(object: &str, function: &str) -> Vec<Instruction> {
    disassemble_of(Processor::Aarch64, &built(object), function)
}

fn count(code: &[Instruction], part: &str) -> usize {
    code.iter().filter(|i| i.text.contains(part)).count()
}

/// `stadd` is carried out far from the core by some processors; what begins with `__aarch64_` is a
/// call for each access.
fn expect_none(code: &[Instruction], forbidden: &[&str]) {
    for forbidden in forbidden {
        assert_eq!(count(code, forbidden), 0, "{forbidden}: {code:#?}");
    }
}

const NEVER: [&str; 5] = ["stadd", "__aarch64_", "svc", "isb", "dsb"];

#[test]
fn an_event_has_one_clock_reading_and_no_fence() {
    let compiler = built("rustc").display().to_string();
    for function in EVENTS {
        let code = code("hot_path.o", function);
        expect_none(&code, &NEVER);
        expect_none(&code, &["dmb"]);
        assert_eq!(count(&code, "cntvct_el0"), 1, "{code:#?}");
        assert!(count(&code, "stlr") > 0, "the commit: {code:#?}");
        assert!(
            count(&code, "cas") > 0 && count(&code, "ldadd") > 0,
            "{code:#?}"
        );
        compare_with_golden_of((Processor::Aarch64, &compiler), function, &code);
    }
}

#[test]
fn an_event_in_c_has_one_clock_reading_and_no_fence() {
    const GCC: &str = "aarch64-linux-gnu-gcc";
    for function in EVENTS.map(|function| format!("c_{function}")) {
        for (object, with, without) in [
            ("hot_path_c_lse.o", "ldadd", "ldxr"),
            ("hot_path_c.o", "ldxr", "ldadd"),
        ] {
            let code = code(object, &function);
            expect_none(&code, &NEVER);
            expect_none(&code, &["dmb", without]);
            assert_eq!(count(&code, "cntvct_el0"), 1, "{code:#?}");
            assert!(count(&code, "stlr") > 0, "the commit: {code:#?}");
            assert!(count(&code, with) > 0, "{code:#?}");
            if with == "ldadd" {
                compare_with_golden_of((Processor::Aarch64, GCC), &function, &code);
            }
        }
    }
}

/// [F1], between the claim of its frame and its words: no other instruction keeps these in order.
#[test]
fn a_span_has_one_fence() {
    let compiler = built("rustc").display().to_string();
    let code = code("hot_span.o", "hot_path_span");
    expect_none(&code, &NEVER);
    assert_eq!(count(&code, "dmb"), 1, "{code:#?}");
    compare_with_golden_of((Processor::Aarch64, &compiler), "hot_path_span", &code);
}
