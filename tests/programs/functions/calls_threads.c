// Threads that come, go, leave early or are cancelled in the middle of calls.
#include "calls.h"
#include <pthread.h>
#include <stdlib.h>

static TRACED long work(long n) {
    COUNT();
    return n < 2 ? n : work(n - 1) + INNER(work(n - 2));
}
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static TRACED void leave_at(int n) {
    COUNT();
    if (n == 0) pthread_exit((void *)5);
    leave_at(n - 1);
    __asm__ volatile("");
}
static TRACED void *short_life(void *argument) {
    COUNT();
    return (void *)work((long)argument % 5);
}
static TRACED void clean_up(void *argument) {
    COUNT();
    work((long)argument);
}
static TRACED void *leaves_early(void *argument) {
    COUNT();
    pthread_cleanup_push(clean_up, (void *)6);
    leave_at((int)(long)argument % 50);
    pthread_cleanup_pop(0);
    return NULL;
}
static pthread_barrier_t ready;
static TRACED void waits_at(int n) {
    COUNT();
    if (n == 0) {
        pthread_barrier_wait(&ready);
        for (;;) pause();
    }
    waits_at(n - 1);
    __asm__ volatile("");
}
static TRACED void *is_cancelled(void *argument) {
    COUNT();
    pthread_cleanup_push(clean_up, (void *)4);
    waits_at((int)(long)argument % 20);
    pthread_cleanup_pop(0);
    return NULL;
}
static volatile int spinning;
static TRACED long spin_inner(long n) {
    COUNT();
    return n + 1;
}
static TRACED void *spins(void *argument) {
    COUNT();
    long n = 0;
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    spinning = 1;
    for (;;) {
        n = spin_inner(n);
        pthread_testcancel();
        usleep(20);
    }
    return argument;
}
static pthread_key_t key;
static TRACED void at_end_of_thread(void *argument) {
    COUNT();
    work((long)argument % 4);
}
static TRACED void *has_key(void *argument) {
    COUNT();
    pthread_setspecific(key, (void *)((long)argument + 1));
    return (void *)work(7);
}

static QUIET long memory(void) {
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld", &pages) != 1) pages = 0;
    fclose(file);
    return pages * 4;
}

static QUIET long join(pthread_t thread) {
    void *result = NULL;
    expect(pthread_join(thread, &result) == 0, "pthread_join");
    return result == PTHREAD_CANCELED ? -1 : (long)result;
}

int main(int count, char **arguments) {
    int threads = count > 1 ? atoi(arguments[1]) : 1000;
    long sum = 0, before = 0;
    pthread_t thread, many[8];
    pthread_key_create(&key, at_end_of_thread);
    pthread_barrier_init(&ready, NULL, 2);
    for (int i = 0; i < threads; i++) {
        if (i == 20) before = memory();
        expect(pthread_create(&thread, NULL, short_life, (void *)(long)i) == 0, "pthread_create");
        sum += join(thread);
    }
    printf("short %ld\n", sum);
    fprintf(stderr, "grown %ld\n", memory() - before);
    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < 8; i++) pthread_create(&many[i], NULL, leaves_early, (void *)(long)(i * 7));
        for (int i = 0; i < 8; i++) sum += join(many[i]);
        for (int i = 0; i < 8; i++) pthread_create(&many[i], NULL, has_key, (void *)(long)i);
        for (int i = 0; i < 8; i++) sum += join(many[i]);
    }
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, NULL, is_cancelled, (void *)(long)i);
        pthread_barrier_wait(&ready);
        pthread_cancel(thread);
        sum += join(thread);
    }
    pthread_create(&thread, NULL, spins, NULL);
    while (!spinning) usleep(100);
    pthread_cancel(thread);
    printf("ended %ld %ld\n", sum, join(thread));
    return 0;
}
