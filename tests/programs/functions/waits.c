// Threads that call small functions as fast as they can: waits GO MODE N. They begin when the file GO is
// there. It ends with 0 whatever is recorded of it; "no permission" is printed where it has none.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
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
// From here on this thread may not sleep.
QUIET static int forbid_sleep(void) {
    struct sock_filter lines[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_nanosleep, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_nanosleep, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof(lines) / sizeof(lines[0]), lines};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
// Children while a thread fills its ring; the calls of each child are traced, too, and those of hooks.
static volatile int is_done;
QUIET static void *work_on(void *unused) {
    while (!is_done) work(unused);
    return NULL;
}
QUIET static void forks(void) {
    pthread_atfork(handled, handled, handled);
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_on, NULL)) abort();
    // Each child waits for a second, for its own recorder.
    for (int i = 0; i < 8; i++) {
        const pid_t child = fork();
        if (child < 0) abort();
        if (child == 0) {
            work(NULL);
            _exit(0);
        }
        int status = 0;
        if (waitpid(child, &status, 0) != child || status != 0) abort();
    }
    is_done = 1;
    pthread_join(thread, NULL);
}
// Ends while a thread waits for the recorder, and comes to its end when that thread goes on.
static volatile long progress;
QUIET static void *work_and_count(void *unused) {
    for (;; progress++) {
        leaf(progress);
    }
    return unused;
}
static long when_exit_began = -1;
__attribute__((destructor)) QUIET static void at_end(void) {
    while (when_exit_began >= 0 && progress == when_exit_began) usleep(1000);
    if (when_exit_began >= 0) work(NULL);
}
QUIET static void exits(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_and_count, NULL)) abort();
    do {
        when_exit_began = progress;
        usleep(300000);
    } while (progress == 0 || progress != when_exit_began);
    exit(0);
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
    } else if (!strcmp(mode, "no-sleep")) {
        if (forbid_sleep()) {
            puts("no permission");
            return 0;
        }
        work(NULL);
    } else if (!strcmp(mode, "forks")) {
        forks();
    } else if (!strcmp(mode, "exits")) {
        exits();
    } else {
        return 2;
    }
    return 0;
}
