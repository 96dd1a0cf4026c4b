/* Events and functions of one program: THREADS ROUNDS LEAVES PAUSE_US.
 *
 * Each round of a thread calls work() once, which calls leaf() LEAVES times and emits one event
 * between them. Before the first round each thread emits EARLY events, and the program waits for the
 * end of a line of its input; after the last one it calls all_done() and waits for the end of its
 * input. PAUSE_US: how long a thread sleeps after 100 rounds. With -DSHARED it is without main, for
 * host_of_functions.c. OWN_SETTINGS: its session is started with them, or goes without. With
 * -DPLANTED=PLACE one event of each thread is emitted in another place. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define RINGMARK_TARGET "with_functions"
#include <ringmark.h>

RINGMARK_EVENT(done, "work.done", (u64, n));
RINGMARK_EVENT(early, "work.early", (u64, n));

#define EARLY 8
/* The round whose event is planted, from the end. */
#define PLANTED_ROUND 20
#define BEFORE 1
#define AFTER 2
#define TWICE 3
#define NOWHERE 4
#ifndef PLANTED
#define PLANTED 0
#endif
#define THREADS_MAX 64

static atomic_int ready;
static atomic_int go;
static uint64_t rounds, leaves, pause_us;

__attribute__((noinline, noclone)) static uint64_t leaf(uint64_t n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

/* Whether this is the round, and its event belongs in one of two places. */
static int is_planted(uint64_t n, int place, int other) {
    return n + PLANTED_ROUND == rounds && (PLANTED == place || PLANTED == other);
}

__attribute__((noinline, noclone)) static uint64_t work(uint64_t n) {
    uint64_t sum = n;
    for (uint64_t i = 0; i < leaves / 2; i++) {
        sum = leaf(sum);
    }
    if (!is_planted(n, BEFORE, NOWHERE) && !is_planted(n, AFTER, NOWHERE)) {
        ringmark_event(done, n);
    }
    if (is_planted(n, TWICE, TWICE)) {
        ringmark_event(done, n);
    }
    for (uint64_t i = leaves / 2; i < leaves; i++) {
        sum = leaf(sum);
    }
    __asm__ volatile("" : "+r"(sum));
    return sum;
}

__attribute__((noinline, noclone)) static void all_done(void) { __asm__ volatile(""); }

static void *runs(void *unused) {
    (void)unused;
    pthread_setname_np(pthread_self(), "worker");
    for (uint64_t n = 0; n < EARLY; n++) {
        ringmark_event(early, n);
    }
    atomic_fetch_add(&ready, 1);
    while (!atomic_load(&go)) {
        usleep(100);
    }
    for (uint64_t n = 0; n < rounds; n++) {
        if (is_planted(n, BEFORE, BEFORE)) {
            ringmark_event(done, n);
        }
        work(n);
        if (is_planted(n, AFTER, AFTER)) {
            ringmark_event(done, n);
        }
        if (pause_us != 0 && n % 100 == 99) {
            usleep((useconds_t)pause_us);
        }
    }
    return NULL;
}

int with_functions(int count, char **words);
int with_functions(int count, char **words) {
    const char *const own = getenv("OWN_SETTINGS");
    if (own != NULL) {
        setenv("RINGMARK", own, 1);
    }
    if (count != 5 || (ringmark_start_from_env() != 0 && own == NULL)) {
        fprintf(stderr, "no session, or other arguments than THREADS ROUNDS LEAVES PAUSE_US\n");
        return 3;
    }
    const int threads = atoi(words[1]);
    rounds = strtoull(words[2], NULL, 10);
    leaves = strtoull(words[3], NULL, 10);
    pause_us = strtoull(words[4], NULL, 10);
    pthread_t all[THREADS_MAX];
    for (int i = 0; i < threads && i < THREADS_MAX; i++) {
        pthread_create(&all[i], NULL, runs, NULL);
    }
    while (atomic_load(&ready) < threads) {
        usleep(100);
    }
    puts("ready");
    fflush(stdout);
    for (int c = getchar(); c != '\n' && c != EOF; c = getchar()) {
    }
    atomic_store(&go, 1);
    for (int i = 0; i < threads && i < THREADS_MAX; i++) {
        pthread_join(all[i], NULL);
    }
    all_done();
    while (getchar() != EOF) {
    }
    return 0;
}

#ifndef SHARED
int main(int count, char **words) { return with_functions(count, words); }
#endif
