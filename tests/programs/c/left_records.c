/* Records that are left by a jump, or that a switch of coroutines holds up.
 *
 *     left_records inside COUNT      a handler leaves a record in its middle, COUNT times
 *     left_records alternate COUNT   the same on an alternate stack, from a handler that interrupts another one
 *     left_records timer COUNT       a timer's handler leaves whatever it interrupts
 *     left_records coroutines COUNT  a timer switches coroutines, which make COUNT events each
 *
 * Prints how many events were begun, and how many came to their end. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#define RINGMARK_TARGET "left"
#include <ringmark.h>

#include "../functions/timed_coroutines.h"

RINGMARK_EVENT(held, "left.held", (u64, n));
RINGMARK_EVENT(between, "left.between", (u64, n), (str, text));
RINGMARK_EVENT(after, "left.after", (u64, n));

enum { BETWEEN = 5000, AFTER = 3000 };
static uint64_t begun, ended;
static sigjmp_buf back;

/* In one instruction: a coroutine may be switched, or left, before it and after it. */
static void add_one(uint64_t *what) { __atomic_fetch_add(what, 1, __ATOMIC_RELAXED); }

static void emit(uint64_t count) {
    for (uint64_t n = 0; n < count; n++) {
        add_one(&begun);
        ringmark_event(between, n, "some words");
        add_one(&ended);
    }
}

static void emit_after(void) {
    for (uint64_t n = 0; n < AFTER; n++) {
        add_one(&begun);
        ringmark_event(after, n);
        add_one(&ended);
    }
}

static void jump(int number) {
    (void)number;
    siglongjmp(back, 1);
}

static void raise_inner(int number) {
    (void)number;
    raise(SIGUSR2);
}

static void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    sigaction(number, &action, NULL);
}

/* From deep in the stack, so that the record's frame is gone when it comes back. */
static void reserve_and_jump(int depth, int number) {
    volatile char room[256];
    room[0] = (char)depth;
    if (depth > 0) {
        reserve_and_jump(depth - 1, number);
    } else {
        add_one(&begun);
        const struct ringmark_reservation it = ringmark_reserve(ringmark_is_on(held), 1);
        raise(number);
        if (it.header != NULL) {
            ringmark_commit(&it);
        }
    }
    (void)room[0];
}

static void inside(uint64_t count, int number) {
    for (volatile uint64_t n = 0; n < count; n++) {
        if (sigsetjmp(back, 1) == 0) {
            reserve_and_jump((int)(n % 7), number);
        }
        emit(BETWEEN);
    }
}

static void alternate(uint64_t count) {
    const stack_t stack = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
    sigaltstack(&stack, NULL);
    handle(SIGUSR1, raise_inner, SA_ONSTACK);
    handle(SIGUSR2, jump, SA_ONSTACK);
    inside(count, SIGUSR1);
}

static void set_timer(long period_us) {
    const struct itimerval every = {{0, period_us}, {0, period_us}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static volatile uint64_t jumps;

static void jump_out(int number) {
    (void)number;
    jumps++;
    siglongjmp(back, 1);
}

/* Each one-shot timer comes at an unforeseen place, mostly inside a record. */
static void timer(uint64_t count) {
    handle(SIGALRM, jump_out, 0);
    while (jumps < count) {
        if (sigsetjmp(back, 1) == 0) {
            const struct itimerval once = {{0, 0}, {0, 50 + (long)(jumps % 97)}};
            setitimer(ITIMER_REAL, &once, NULL);
            for (;;) {
                emit(1);
            }
        }
    }
    set_timer(0);
}

static uint64_t each;

static void work(int number) {
    (void)number;
    emit(each);
}

int main(int count, char **words) {
    if (count < 3 || ringmark_start_from_env() != 0) {
        return 3;
    }
    const uint64_t times = strtoull(words[2], NULL, 10);
    handle(SIGUSR2, jump, 0);
    if (strcmp(words[1], "inside") == 0) {
        inside(times, SIGUSR2);
    } else if (strcmp(words[1], "alternate") == 0) {
        alternate(times);
    } else if (strcmp(words[1], "timer") == 0) {
        timer(times);
    } else {
        each = times;
        run_timed_coroutines(work, 100);
    }
    emit_after();
    printf("%llu %llu\n", (unsigned long long)begun, (unsigned long long)ended);
    return 0;
}
