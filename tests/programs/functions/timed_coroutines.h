// Coroutines that a timer switches, at whatever instruction it comes. Nothing here is traced.
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <ucontext.h>

#ifndef QUIET
#define QUIET __attribute__((noinline, unused))
#endif

enum { COROUTINES = 6 };
static struct {
    ucontext_t each[COROUTINES], scheduler;
    volatile int now, is_done[COROUTINES];
    void (*work)(int number);
} coroutines;
static volatile long switches;

static QUIET void block_timer(int how) {
    sigset_t timer;
    sigemptyset(&timer);
    sigaddset(&timer, SIGALRM);
    sigprocmask(how, &timer, NULL);
}
static QUIET int next_coroutine(void) {
    for (int i = 1; i <= COROUTINES; i++)
        if (!coroutines.is_done[(coroutines.now + i) % COROUTINES]) return (coroutines.now + i) % COROUTINES;
    return -1;
}
static QUIET void switch_to_next(int signal) {
    const int before = coroutines.now, after = next_coroutine();
    switches += signal != 0;
    if (after < 0 || after == before) return;
    coroutines.now = after;
    swapcontext(&coroutines.each[before], &coroutines.each[after]);
}
static QUIET void of_coroutine(int number) {
    block_timer(SIG_UNBLOCK);
    coroutines.work(number);
    block_timer(SIG_BLOCK);
    coroutines.is_done[number] = 1;
    const int after = next_coroutine();
    if (after < 0) setcontext(&coroutines.scheduler);
    coroutines.now = after;
    setcontext(&coroutines.each[after]);
}
// Each coroutine calls `work` with its number. Returns when all have ended. The timer is blocked but in their work: a
// signal that comes before the first one runs, or while a stack is left, would save a stack as that of another one.
static QUIET void run_timed_coroutines(void (*work)(int number), long microseconds) {
    coroutines.work = work;
    block_timer(SIG_BLOCK);
    for (int i = 0; i < COROUTINES; i++) {
        ucontext_t *one = &coroutines.each[i];
        getcontext(one);
        one->uc_stack.ss_size = 128 << 10;
        one->uc_stack.ss_sp = malloc(one->uc_stack.ss_size);
        makecontext(one, (void (*)(void))of_coroutine, 1, i);
    }
    struct sigaction action = {.sa_handler = switch_to_next, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, microseconds}, {0, microseconds}}, none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &often, NULL);
    swapcontext(&coroutines.scheduler, &coroutines.each[0]);
    setitimer(ITIMER_REAL, &none, NULL);
    block_timer(SIG_UNBLOCK);
}
