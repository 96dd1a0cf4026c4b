//! What the checks are given: files, directories and documents that a rule names.

use super::owners::{Exception, Owned};

/// The only files that may hold `unsafe`. Adding one is a decision: give the reason in the
/// commit, and keep what needs it as small as it can be. A file that needs it no longer must go.
pub const UNSAFE_FILES: &[&str] = &[
    // The thread block, its memory that a fork wipes, and the sites that the linker collected.
    "producer/src/arch/aarch64.rs",
    "producer/src/arch/x86_64.rs",
    "producer/src/sites.rs",
    "producer/src/thread_block.rs",
    "producer/src/wiped.rs",
    // Session start: handing a ring to its thread, signal masks, hooks at thread exit and fork, the
    // half of a word that helper and asker wait on.
    "producer/src/session/attach.rs",
    "producer/src/session/control.rs",
    "producer/src/session/exit_status.rs",
    "producer/src/session/handler.rs",
    "producer/src/session/held_signals.rs",
    "producer/src/session/pin.rs",
    "producer/src/session/process.rs",
    "producer/src/session/raw.rs",
    "producer/src/session/sample.rs",
    "producer/src/session/warm.rs",
    // The bridge from `tracing`: words that are there if counted, reference counts of living spans,
    // values that outlive a call of the visitor.
    "producer/src/tracing/ids.rs",
    "producer/src/tracing/texts.rs",
    "producer/src/tracing/values.rs",
    // Instructions of each processor: words whole for signal handlers, system calls, the counter.
    "ring/src/arch/aarch64.rs",
    "ring/src/arch/any.rs",
    "ring/src/arch/x86_64.rs",
    // System calls that a program's own functions cannot stand in for.
    "ring/src/system/raw.rs",
    // A query of the kernel about this process's maps, which takes the place of reading them all.
    "ring/src/system/own_maps.rs",
    // The clock, the file locks, the compare-exchange, the map, the path of an event.
    "ring/src/system/clock.rs",
    "ring/src/protocol/single_instruction.rs",
    "ring/src/system/guard.rs",
    "ring/src/system/file_lock.rs",
    "ring/src/system/mapping.rs",
    "ring/src/protocol/control_lock.rs",
    "ring/src/protocol/published_static.rs",
    "ring/src/protocol/writer.rs",
    "ring/src/protocol/writer/extended.rs",
    "ring/src/protocol/mailbox.rs",
    "ring/src/protocol/open_spans.rs",
    "ring/src/protocol/own_rings.rs",
    "ring/src/protocol/page_words.rs",
    "ring/src/protocol/raw_span.rs",
    "ring/src/protocol/reservation.rs",
    // What C calls, and the types that it defines.
    "c-api/src/lib.rs",
    "c-api/src/record.rs",
    "c-api/src/session.rs",
    "c-api/src/types.rs",
    // Function tracer: the loader's lock and what it guards, writes into code and memory for
    // code, locks that a fork knows, the one engine, and what sites may call.
    "function-tracer/shared-object/src/attach.rs",
    "function-tracer/shared-object/src/callback.rs",
    "function-tracer/shared-object/src/lib.rs",
    "function-tracer/shared-object/src/sanitizers.rs",
    "function-tracer/shared-object/src/start.rs",
    "function-tracer/src/control/fork_hooks.rs",
    "function-tracer/src/control/profile_report.rs",
    "function-tracer/src/arch/x86_64/head_store.rs",
    "function-tracer/src/arch/x86_64/passing.rs",
    // Counters that handlers change, too.
    "function-tracer/src/record/x86_64/handler_safe.rs",
    "function-tracer/src/fork_locks.rs",
    // What the loader is led to when it has mapped a module, and its word that says so.
    "function-tracer/src/loader_watch/stub.rs",
    // Objects that the loader maps for code.
    "function-tracer/src/patch/code_objects.rs",
    "function-tracer/src/patch/code_region.rs",
    "function-tracer/src/patch/code_writes.rs",
    "function-tracer/src/sites/loader.rs",
    "function-tracer/src/patch/trampolines.rs",
    // A function with a site of its own.
    "function-tracer/tests/callback.rs",
    // Its records: stubs and what they have pushed, open calls, tables that the stubs read.
    "function-tracer/src/record/x86_64/call_stubs.rs",
    "function-tracer/src/record/x86_64/stub_frames.rs",
    "function-tracer/src/record/x86_64/inside_stub.rs",
    "function-tracer/src/record/x86_64/into_slow_way.rs",
    "function-tracer/src/record/x86_64/measured_function.rs",
    "function-tracer/src/record/x86_64/processor.rs",
    "function-tracer/src/record/x86_64/profile_stubs.rs",
    "function-tracer/src/record/x86_64/second_frames.rs",
    "function-tracer/src/record/x86_64/select_stubs.rs",
    "function-tracer/src/record/x86_64/stub.rs",
    "function-tracer/src/record/x86_64/timed_stubs.rs",
    "function-tracer/src/record/x86_64/vectors.rs",
    "function-tracer/src/record/by_type.rs",
    "function-tracer/src/record/callbacks.rs",
    "function-tracer/src/record/elsewhere.rs",
    "function-tracer/src/record/nodes.rs",
    "function-tracer/src/record/profile_tables.rs",
    "function-tracer/src/record/open_calls.rs",
    "function-tracer/src/record/own_memory.rs",
    "function-tracer/src/record/own_stack.rs",
    "function-tracer/src/record/site_tables.rs",
    "function-tracer/src/record/true_returns.rs",
    "function-tracer/src/record/unwritten.rs",
    // Functions whose names the disassembler must find.
    "producer/examples/hot_path.rs",
    "producer/examples/hot_span.rs",
    // Writers over plain memory and over loom's.
    "ring/tests/any_order.rs",
    "ring/tests/own_rings.rs",
    "ring/tests/heap/mod.rs",
    "ring/tests/loom_handover.rs",
    "ring/tests/open_spans.rs",
    "ring/tests/models/mod.rs",
    // A bare write loop straight from a live map, to measure against; a producer made by hand.
    "benches/benches/record.rs",
    "reader/tests/common/mod.rs",
    "reader/tests/live.rs",
    "reader/tests/record.rs",
    // What the C library hands a program before its `main`, and a child that gets the same; signals that are read.
    "console/src/given.rs",
    "console/src/taken_signals.rs",
    // Another process: its threads stopped, its registers set; the code that it runs then.
    "attach/src/ptrace.rs",
    "attach/src/stopped_process.rs",
    "attach/src/trampoline.rs",
    // Events of the kernel that share a buffer; a mutex of the C library that two threads share.
    "profile/src/joined.rs",
    "profile/tests/own_threads.rs",
    // Traced programs that share memory with their test, or do what only C may.
    "tests/programs/deny/tracer.rs",
    "tests/programs/children.rs",
    "tests/programs/emit.rs",
    "tests/programs/ends.rs",
    "tests/programs/forks.rs",
    "tests/programs/odd.rs",
    "tests/programs/own_sigbus.rs",
    "tests/programs/phases.rs",
    "tests/programs/plugin_host.rs",
    "tests/programs/quiet.rs",
    "tests/programs/rude.rs",
    "tests/programs/sandbox.rs",
    "tests/programs/sent.rs",
    "tests/programs/signals.rs",
    "tests/programs/rust-plugin/src/lib.rs",
    "tests/programs/stepped/child.rs",
    "tests/programs/traced_forks.rs",
    "tests/programs/ways_to_end.rs",
    // Tracing a program instruction by instruction.
    "tests/session/step/ptrace.rs",
];

/// Directories whose code runs inside the traced program.
pub const TRACED: &[&str] = &[
    "ring/src/",
    "producer/src/",
    "function-tracer/src/",
    "c-api/src/",
    "function-tracer/shared-object/src/",
];

/// Exceptions there: (path, token).
pub const TRACED_ALLOWED: &[(&str, &str)] = &[
    // Not there outside the models.
    ("ring/src/protocol/order.rs", "Mutex"),
    // Forks hold it, and so free it in the child; it guards what installs those hooks.
    ("function-tracer/src/control/process_tracers.rs", "Mutex"),
    ("function-tracer/src/control/fork_hooks.rs", "Once"),
    ("function-tracer/src/control/profile_report.rs", "Once"),
    ("function-tracer/src/fork_locks.rs", "Once"),
];

/// Directories whose memory orderings carry labels.
pub const ORDERED: &[&str] = &["ring/src/", "producer/src/"];

/// Where the models that weaken them begin.
pub const MODELS: &str = "ring/tests/loom_";
/// The file that holds the table of orderings.
pub const ORDERINGS_TABLE: &str = "ring/src/lib.rs";

/// The package that programs depend on.
pub const PRODUCER: &str = "ringmark";
/// How many packages of others it may always need.
pub const PRODUCER_DEPENDENCIES_MAX: usize = 5;

/// Documents that must be there.
pub const DOCUMENTS: &[&str] = &[
    "README.md",
    "ARCHITECTURE.md",
    "DESIGN.md",
    "PROMISES.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/src/SUMMARY.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "format-spec/SPEC.md",
];

/// Where the details of the promises are.
pub const PROMISES_DETAILS: &str = "docs/promises/";

/// Directories of the crates that users run or link.
pub const PRODUCT: &[&str] = &[
    "attach",
    "c-api",
    "collector",
    "decoder",
    "export",
    "format-spec",
    "function-tracer",
    "function-tracer/shared-object",
    "producer",
    "producer/macros",
    "profile",
    "reader",
    "ring",
    "console",
    "stream",
    "tools",
];

/// What is spelled in one place only.
pub const OWNED: &[Owned<'_>] = &[
    (
        "format-spec/src/",
        &[
            "b\"RMKB\"",
            "b\"RMKSTORE\"",
            "b\"RMREMOVE\"",
            "b\"RINGMARK\"",
            // As texts, too; "RINGMARK" is also a variable of the environment.
            "\"RMKB\"",
            "\"RMKSTORE\"",
            "\"RMREMOVE\"",
            "function_profile",
        ],
    ),
    (
        "format-spec/src/tracer_text/",
        &[
            "budget_ppm",
            "cost_ppm",
            "given_up",
            "lease_ms",
            "min_bytes",
            "not_called",
            "shadow_stack",
            "uncounted",
            "untraceable",
        ],
    ),
    ("format-spec/src/session_text.rs", &["\"ping\"", "\"pong\""]),
];

/// Where one of them is spelled all the same.
pub const OWNED_ALLOWED: &[Exception<'_>] = &[(
    "attach/src/trampoline.rs",
    "b\"RINGMARK\"",
    "marks a page of code in another process, and no file; this crate knows none of ours",
)];

/// Directories whose bytes are those of the format. The others read machine code, ELF and other
/// processes.
pub const OUR_BYTES: &[&str] = &[
    "collector/",
    "decoder/",
    "producer/",
    "reader/",
    "ring/",
    "console/",
    "stream/",
    "tools/",
];

/// Files there whose bytes are not, and what they are.
pub const OFFSETS_ALLOWED: &[(&str, &str)] = &[
    ("decoder/src/words/number.rs", "digits of a number"),
    ("decoder/src/words/timestamp.rs", "characters of a time"),
    (
        "ring/src/protocol/slot.rs",
        "the halves of a name in two words",
    ),
];

/// Files outside the format with a struct for bytes, and why.
pub const LAYOUTS_ALLOWED: &[(&str, &str)] = &[(
    "ring/src/system/removals.rs",
    "a whole file, of structs of the format one after the other",
)];

/// Tests that depend on the machine in a way that `machine.rs` names, and why they may.
pub const MACHINE_ALLOWED: &[(&str, &str, &str)] = &[
    (
        "fleet/tests/common/s3s.rs",
        "version",
        "the server is started right after, and waited for",
    ),
    (
        "tests/record/discard.rs",
        "sleep",
        "a recorder is stopped and killed at some moment: all of them are right",
    ),
    (
        "tests/record/kill9.rs",
        "sleep",
        "a program is killed at some moment: all of them are right",
    ),
    (
        "tests/record/open_spans.rs",
        "sleep",
        "a span is open for so long at least; a program is killed at some moment",
    ),
    (
        "tests/src/code.rs",
        "version",
        "the version itself is wanted: golden code is of one compiler",
    ),
    (
        "tests/store/store_retention.rs",
        "sleep",
        "a collector is killed at some moment: all of them are right",
    ),
    (
        "tests/stream/full_store.rs",
        "sleep",
        "a time in which no streamer may come again: on a busy machine less is tested, and nothing fails",
    ),
    (
        "tests/stream/streaming_spill.rs",
        "sleep",
        "a streamer is killed at some moment: all of them are right",
    ),
];
