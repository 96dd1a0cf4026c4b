// Threads that work in parts, and between them: triggers THREADS PARTS PAUSE_US. Negative: parts
// without end.
#include "calls.h"
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>

#define INSIDE 100
#define OUTSIDE 30

static pthread_barrier_t step;
static long parts, pause_us;
static jmp_buf back;

// A traced function whose symbol is its name.
#define PLACE WHOLE

static PLACE unsigned long leaf(unsigned long n) {
    COUNT();
    return n + 1;
}
static PLACE unsigned long work(unsigned long n) {
    COUNT();
    return leaf(n) * 3;
}
static PLACE long begin_part(long part) {
    COUNT();
    return (long)INNER(leaf((unsigned long)part)) + 1;
}
static PLACE long end_part(long part) {
    COUNT();
    return (long)INNER(leaf((unsigned long)part)) + 2;
}
// Ends without a return in every second part.
static PLACE void leave_part(long part) {
    COUNT();
    leaf(1);
    if (part % 2) longjmp(back, 1);
}

static QUIET void *thread(void *argument) {
    unsigned long n = (unsigned long)argument;
    for (long part = 0; parts < 0 || part < parts; part++) {
        for (int i = 0; i < OUTSIDE; i++) n = work(n);
        pthread_barrier_wait(&step); // All are outside.
        pthread_barrier_wait(&step); // The part has begun.
        for (int i = 0; i < INSIDE; i++) n = work(n);
        pthread_barrier_wait(&step); // All are done.
        pthread_barrier_wait(&step); // The part has ended.
    }
    return (void *)n;
}

static QUIET void run_parts(void) {
    for (volatile long part = 0; parts < 0 || part < parts; part++) {
        pthread_barrier_wait(&step);
        begin_part(part);
        pthread_barrier_wait(&step);
        if (pause_us) usleep((useconds_t)pause_us);
        pthread_barrier_wait(&step);
        if (setjmp(back) == 0) leave_part(part);
        end_part(part);
        pthread_barrier_wait(&step);
    }
}

int main(int count, char **arguments) {
    long threads = count > 1 ? atol(arguments[1]) : 4;
    pthread_t all[64];
    unsigned long sum = 0;
    parts = count > 2 ? atol(arguments[2]) : 10;
    pause_us = count > 3 ? atol(arguments[3]) : 0;
    expect(threads > 0 && threads <= 64, "threads");
    pthread_barrier_init(&step, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, thread, (void *)i);
    run_parts();
    for (long i = 0; i < threads; i++) {
        void *result;
        pthread_join(all[i], &result);
        sum += (unsigned long)result;
    }
    printf("%lu\n", sum);
    return 0;
}
