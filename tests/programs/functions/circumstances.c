// Calls in circumstances of which a tracer must change nothing. Arguments: what is done, and how often; it begins when
// standard input ends. Standard output is the same whether functions are traced.
#define _GNU_SOURCE
#include "calls.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

static long times;
static long wrong;

static TRACED long leaf(long x) {
    COUNT();
    HIDE(x);
    return x * 3;
}
static TRACED long deep(long n, long x) {
    COUNT();
    return n ? INNER(deep(n - 1, x)) + 1 : INNER(leaf(x));
}
static TRACED void *works(void *number) {
    COUNT();
    long x = (long)number;
    for (long i = 0; i < 20; i++)
        if (deep(8, x + i) != (x + i) * 3 + 8) __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
    return NULL;
}
// All of them live at once.
static QUIET void in_threads(long count) {
    pthread_t *threads = calloc((size_t)count, sizeof *threads);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 128 << 10);
    for (long i = 0; i < count; i++) expect(pthread_create(&threads[i], &small, works, (void *)i) == 0, "a thread");
    for (long i = 0; i < count; i++) pthread_join(threads[i], NULL);
    free(threads);
}

// Each child makes calls, of a thread, too, and every other one has a child of its own.
static long of_children = 1;
static QUIET int wait_for(pid_t child) {
    int status = -1;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
static QUIET pid_t start_child(long i, int generations) {
    pid_t child = fork();
    expect(child >= 0, "a fork");
    if (child) return child;
    works((void *)i);
    in_threads(of_children);
    int below = generations ? wait_for(start_child(i + 1, generations - 1)) : 0;
    exit(wrong ? 98 : below ? below : (int)(deep(2, i) % 64));
}
static QUIET void forks(void) {
    in_threads(2);
    for (long i = 0; i < times; i++) {
        int status = wait_for(start_child(i, i % 2));
        printf("child %ld: %d\n", i, status);
    }
}
static QUIET void forks_without_threads(void) {
    of_children = 0;
    forks();
}
static QUIET void locked(void) {
    expect(mlockall(MCL_CURRENT | MCL_FUTURE) == 0, "locked memory");
    for (long i = 0; i < times; i++) in_threads(8);
}
// Its rights are gone before its first calls, and it has nobody's from then on.
static QUIET void nobody(void) {
    expect(setgid(65534) == 0 && setuid(65534) == 0, "the rights of nobody");
    in_threads(4);
    forks();
    printf("user %d, again %d\n", (int)getuid(), setuid(0));
}
static QUIET void ignored(void) {
    struct sigaction action;
    int ends[2];
    expect(pipe(ends) == 0, "a pipe");
    close(ends[0]);
    for (long i = 0; i < times; i++) {
        works((void *)i);
        wrong += write(ends[1], "", 1) != -1 || errno != EPIPE;
        wrong += raise(SIGUSR1);
    }
    sigaction(SIGPIPE, NULL, &action);
    printf("SIGPIPE ignored: %d\n", action.sa_handler == SIG_IGN);
    sigaction(SIGUSR1, NULL, &action);
    printf("SIGUSR1 ignored: %d\n", action.sa_handler == SIG_IGN);
}
static QUIET void threads(void) { in_threads(times); }

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {{"forks", forks}, {"forks-alone", forks_without_threads}, {"locked", locked}, {"nobody", nobody}, {"ignored", ignored}, {"threads", threads}};
    expect(count == 3, "two arguments");
    times = atol(arguments[2]);
    setvbuf(stdout, NULL, _IOLBF, 0); // A child would write the lines again.
    // A tracer may be loaded meanwhile: it looks into the program's own code again and again.
    struct pollfd input = {.events = POLLIN};
    while (poll(&input, 1, 1) == 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].name, arguments[1])) parts[i].run();
    printf("%s: %ld wrong\n", arguments[1], wrong);
    return wrong != 0;
}
