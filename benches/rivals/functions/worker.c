/* The traced process of a race: waits for a line on one pipe, does the work, answers with a line
 * on another. Compiled without any instrumentation, whatever the flags of the other files.
 *
 *   c N  call N functions, answer wall ns      t N  the same, thread CPU ns
 *   p N  N rounds of the program, wall ns      x N  switch the tracer on or off N times, wall ns
 *   q 0  end
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "work.h"

/* What a tracer that lives in the process does when told so; most need nothing. */
__attribute__((weak)) void tracer_begin(void) {}
__attribute__((weak)) void tracer_switch(void) {}
__attribute__((weak)) void tracer_end(void) {}
/* Emits events instead of calling functions, where there is one. */
void tracer_events(long n) __attribute__((weak));

static int64_t now(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void call(long n) {
    for (long i = 0; i < n; i += LEAVES) {
        leaf_0(i);
        leaf_1(i);
        leaf_2(i);
        leaf_3(i);
        leaf_4(i);
        leaf_5(i);
        leaf_6(i);
        leaf_7(i);
    }
}

static void rounds(long n) {
    for (long i = 0; i < n; i++)
        program_round(i);
}

/* Some work before the time is taken: this process has just been woken. */
static int64_t timed(clockid_t clock, void (*work)(long), long warm, long n) {
    work(warm);
    int64_t start = now(clock);
    work(n);
    return now(clock) - start;
}

static void switched(long n) {
    for (long i = 0; i < n; i++)
        tracer_switch();
}

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: worker ORDERS ANSWERS CORE\n");
        return 2;
    }
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(atoi(argv[3]), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        perror("worker: not pinned");
    FILE *orders = fopen(argv[1], "r");
    FILE *answers = fopen(argv[2], "w");
    if (!orders || !answers) {
        perror("worker: pipes");
        return 2;
    }
    tracer_begin();
    void (*work)(long) = tracer_events ? tracer_events : call;
    char verb;
    long n;
    while (fscanf(orders, " %c %ld", &verb, &n) == 2 && verb != 'q') {
        int64_t ns = verb == 'c'   ? timed(CLOCK_MONOTONIC, work, 64, n)
                     : verb == 't' ? timed(CLOCK_THREAD_CPUTIME_ID, work, 64, n)
                     : verb == 'p' ? timed(CLOCK_MONOTONIC, rounds, 1, n)
                                   : timed(CLOCK_MONOTONIC, switched, 0, n);
        fprintf(answers, "%lld\n", (long long)ns);
        fflush(answers);
    }
    tracer_end();
    return 0;
}
