// Calls whose records are left in their middle by a jump, or held up by a switch of coroutines: `jumps COUNT` or
// `coroutines COUNT`. A timer decides where.
#define _GNU_SOURCE
#include "calls.h"
#include "timed_coroutines.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>

static sigjmp_buf back;
static long times;
static volatile long jumps, wrong;

static TRACED long leaf(long x) {
    COUNT();
    HIDE(x);
    return x * 3;
}
static TRACED long deep(long n, long x) {
    COUNT();
    return n ? INNER(deep(n - 1, x)) + 1 : INNER(leaf(x));
}
static TRACED long after(long x) {
    COUNT();
    HIDE(x);
    return x + 1;
}

static QUIET void handle(void (*handler)(int), long first, long then) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, then}, {0, first}};
    setitimer(ITIMER_REAL, &often, NULL);
}

static QUIET void jump_out(int number) {
    (void)number;
    jumps++;
    siglongjmp(back, 1);
}
static QUIET void jump_often(void) {
    while (jumps < times) {
        if (sigsetjmp(back, 1) == 0) {
            handle(jump_out, 60 + jumps % 97, 0);
            for (long i = 0;; i++) wrong += deep(5, i) != i * 3 + 5;
        }
    }
    handle(jump_out, 0, 0);
}

static QUIET void call_often(int number) {
    for (long i = 0; i < times; i++) wrong += deep(4 + number, i) != i * 3 + 4 + number;
}

QUIET int main(int count, char **words) {
    expect(count == 3, "two arguments");
    times = atol(words[2]);
    if (strcmp(words[1], "jumps") == 0) jump_often();
    else run_timed_coroutines(call_often, 300);
    for (long i = 0; i < 3000; i++) wrong += after(i) != i + 1;
    printf("%ld wrong\n", wrong);
    return wrong != 0;
}
