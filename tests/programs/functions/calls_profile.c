// Calls in several threads, recursive and unwound ones, too; then the program says how many there
// were and waits: calls_profile FILE [THREADS [ROUNDS]].
#include "calls.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

static _Thread_local jmp_buf back;
static _Thread_local volatile unsigned sink;
static long rounds = 200;

#define MANY(n)                                                                               \
    static TRACED void many_##n(void) {                                                       \
        COUNT();                                                                              \
        sink += n;                                                                            \
    }
#define TEN(of, n) of(n##0) of(n##1) of(n##2) of(n##3) of(n##4) of(n##5) of(n##6) of(n##7) of(n##8) of(n##9)
TEN(MANY, 1) TEN(MANY, 2) TEN(MANY, 3) TEN(MANY, 4) TEN(MANY, 5) TEN(MANY, 6) TEN(MANY, 7)
#define CALL(n) many_##n();
static TRACED void calls_many(void) {
    COUNT();
    TEN(CALL, 1) TEN(CALL, 2) TEN(CALL, 3) TEN(CALL, 4) TEN(CALL, 5) TEN(CALL, 6) TEN(CALL, 7)
}

static TRACED unsigned leaf(unsigned n) {
    COUNT();
    for (unsigned i = 0; i < n; i++) sink += i;
    return n + 1;
}
static TRACED unsigned deeper(unsigned n) {
    COUNT();
    leaf(n);
    return n == 0 ? 0 : INNER(deeper(n - 1)) + 1;
}
static TRACED int is_odd(int n);
static TRACED int is_even(int n) {
    COUNT();
    return n == 0 ? 1 : INNER(is_odd(n - 1));
}
static TRACED int is_odd(int n) {
    COUNT();
    return n == 0 ? 0 : INNER(is_even(n - 1));
}
static TRACED void fall(int n) {
    COUNT();
    if (n == 0) longjmp(back, 1);
    fall(n - 1);
    sink++;
}
static TRACED int catches(int depth) {
    COUNT();
    if (setjmp(back) == 0) fall(depth);
    return depth;
}
static TRACED unsigned around(unsigned n) {
    COUNT();
    return deeper(n % 7) + leaf(n % 50) + (unsigned)is_even((int)(n % 5));
}
static TRACED void *worker(void *argument) {
    COUNT();
    unsigned sum = 0;
    for (long i = 0; i < rounds; i++) {
        sum += around((unsigned)i);
        if (i % 8 == 0) sum += (unsigned)catches((int)(i % 4));
    }
    calls_many();
    return (void *)(long)(sum + (unsigned)(long)argument);
}

static QUIET void report_to(const char *path) {
    char unready[4096];
    snprintf(unready, sizeof unready, "%s.new", path);
    FILE *file = fopen(unready, "w");
    expect(file != NULL, "fopen");
    for (struct counter *c = __start_counters; c < __stop_counters; c++)
        fprintf(file, "%s %lu\n", c->name, c->calls);
    fclose(file);
    expect(rename(unready, path) == 0, "rename");
}

int main(int count, char **arguments) {
    long threads = count > 2 ? atol(arguments[2]) : 4;
    if (count > 3) rounds = atol(arguments[3]);
    pthread_t all[64];
    for (int turn = 0; turn < 2; turn++) {
        for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, worker, (void *)i);
        for (long i = 0; i < threads; i++) pthread_join(all[i], NULL);
    }
    report_to(arguments[1]);
    for (;;) pause();
}
