// Threads that call small functions as fast as they can: waits GO MODE N. They begin when the file GO is
// there. It ends with 0 whatever is recorded of it; "no permission" is printed where it has none.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define QUIET __attribute__((patchable_function_entry(0), noinline))
#define TRACED __attribute__((noinline))

static volatile long calls_made;
static long number;

TRACED long leaf(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}
QUIET static void *work(void *unused) {
    (void)unused;
    for (long n = 0; n < number; n = leaf(n)) {
    }
    return NULL;
}
// As an allocator is: its lock is held while the call is recorded.
static pthread_mutex_t arena = PTHREAD_MUTEX_INITIALIZER;
TRACED long take_from_arena(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}
QUIET static void *allocate(void *unused) {
    (void)unused;
    for (long n = 0; n < number;) {
        pthread_mutex_lock(&arena);
        n = take_from_arena(n);
        pthread_mutex_unlock(&arena);
    }
    return NULL;
}
TRACED void handled(void) {
    calls_made++;
}
QUIET static void on_alarm(int signal) {
    (void)signal;
    handled();
}
QUIET static void in_threads(void *(*function)(void *), int threads) {
    pthread_t all[16];
    if (threads > 16) abort();
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&all[i], NULL, function, NULL)) abort();
    }
    for (int i = 0; i < threads; i++) pthread_join(all[i], NULL);
}
QUIET int main(int argc, char **argv) {
    if (argc < 4) return 2;
    while (access(argv[1], F_OK)) usleep(1000);
    number = atol(argv[3]);
    const char *mode = argv[2];
    if (!strcmp(mode, "one")) {
        work(NULL);
    } else if (!strcmp(mode, "short")) {
        for (int i = 0; i < 100; i++) in_threads(work, 5);
    } else if (!strcmp(mode, "malloc")) {
        in_threads(allocate, 4);
    } else if (!strcmp(mode, "real-time")) {
        struct sched_param priority = {.sched_priority = 1};
        if (sched_setscheduler(0, SCHED_FIFO, &priority)) {
            puts("no permission");
            return 0;
        }
        work(NULL);
    } else if (!strcmp(mode, "handler")) {
        struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
        sigaction(SIGALRM, &action, NULL);
        struct itimerval every = {{0, 100}, {0, 100}};
        setitimer(ITIMER_REAL, &every, NULL);
        work(NULL);
    } else {
        return 2;
    }
    return 0;
}
