// Calls whose records are left in their middle by a jump, or held up by a switch of coroutines: `jumps COUNT` or
// `coroutines COUNT`. A timer decides where.
#define _GNU_SOURCE
#include "calls.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

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

enum { COROUTINES = 6 };
static ucontext_t coroutines[COROUTINES], scheduler;
static volatile int now, is_done[COROUTINES];
static QUIET int next(void) {
    for (int i = 1; i <= COROUTINES; i++)
        if (!is_done[(now + i) % COROUTINES]) return (now + i) % COROUTINES;
    return -1;
}
static QUIET void switch_to_next(int number) {
    int before = now, to = next();
    (void)number;
    if (to < 0 || to == before) return;
    now = to;
    swapcontext(&coroutines[before], &coroutines[to]);
}
static QUIET void work(int number) {
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &timer, NULL);
    for (long i = 0; i < times; i++) wrong += deep(4 + number, i) != i * 3 + 4 + number;
    sigprocmask(SIG_BLOCK, &timer, NULL);
    is_done[number] = 1;
    int to = next();
    if (to < 0) setcontext(&scheduler);
    now = to;
    setcontext(&coroutines[to]);
}
static QUIET void switch_often(void) {
    for (int i = 0; i < COROUTINES; i++) {
        getcontext(&coroutines[i]);
        coroutines[i].uc_stack.ss_size = 128 << 10;
        coroutines[i].uc_stack.ss_sp = malloc(coroutines[i].uc_stack.ss_size);
        // Before its stack is left a handler must not come on it again.
        sigemptyset(&coroutines[i].uc_sigmask);
        sigaddset(&coroutines[i].uc_sigmask, SIGALRM);
        makecontext(&coroutines[i], (void (*)(void))work, 1, i);
    }
    handle(switch_to_next, 300, 300);
    swapcontext(&scheduler, &coroutines[0]);
    handle(switch_to_next, 0, 0);
}

QUIET int main(int count, char **words) {
    expect(count == 3, "two arguments");
    times = atol(words[2]);
    if (strcmp(words[1], "jumps") == 0) jump_often();
    else switch_often();
    for (long i = 0; i < 3000; i++) wrong += after(i) != i + 1;
    printf("%ld wrong\n", wrong);
    return wrong != 0;
}
