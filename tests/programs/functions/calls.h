// Functions that count their calls themselves, to be compared with what was recorded of them.
#ifndef CALLS_H
#define CALLS_H
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct counter {
    const char *name;
    unsigned long calls;
};
extern struct counter __start_counters[], __stop_counters[];

// A function that is never traced.
#ifdef __clang__
#define UNTRACED patchable_function_entry(0), xray_never_instrument
#else
#define UNTRACED patchable_function_entry(0), no_instrument_function
#endif
#define QUIET __attribute__((UNTRACED, noinline, unused))
// A function that is traced, and does not become part of its caller.
#define TRACED __attribute__((noinline))
// The same, and it gets all its arguments, whatever the compiler knows of them.
#ifdef __clang__
#define WHOLE __attribute__((noinline, used))
#else
#define WHOLE __attribute__((noipa))
#endif
// First statement of a traced function.
#define COUNT()                                                                               \
    do {                                                                                      \
        static struct counter counter __attribute__((section("counters"), used)) = {__func__, 0}; \
        __atomic_fetch_add(&counter.calls, 1, __ATOMIC_RELAXED);                              \
    } while (0)
// Keeps the compiler from seeing through a value.
#define HIDE(value) __asm__ volatile("" : "+r"(value) : : "memory")

// A call that the compiler can turn into neither a jump nor a loop.
#define INNER(call)                                                                           \
    ({                                                                                        \
        __typeof__(call) below = (call);                                                      \
        __asm__ volatile("" : : : "memory");                                                  \
        below;                                                                                \
    })

// What was called in this process, on standard error.
static QUIET void report_calls(void) {
    char line[256];
    for (struct counter *c = __start_counters; c < __stop_counters; c++) {
        int length = snprintf(line, sizeof line, "calls %s %lu\n", c->name, c->calls);
        if (write(2, line, (size_t)length) != length) _exit(99);
    }
}

// A process that shares nothing with the one before it begins from zero.
static QUIET void forget_calls(void) {
    for (struct counter *c = __start_counters; c < __stop_counters; c++) c->calls = 0;
}

// Runs after everything else of the program.
static QUIET __attribute__((destructor(101))) void last(void) { report_calls(); }

static QUIET void expect(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "WRONG: %s\n", what);
        _exit(98);
    }
}
#endif
