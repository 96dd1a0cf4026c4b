// Work that signals interrupt at any instruction, and what their handlers may do. Arguments: what is done, and how often;
// it begins when standard input ends. It is the same whether functions are traced; with `cancel` build with -fexceptions.
#define _GNU_SOURCE
#include "calls.h"
#include "timed_coroutines.h"
#include <execinfo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unwind.h>
#ifdef COLLECTED
#define GC_THREADS
#include <gc.h>
#endif

static long times;
static volatile long seen, wrong;

static TRACED long leaf(long x) {
    COUNT();
    HIDE(x);
    return x * 3;
}
static TRACED long deep(long n, long x) {
    COUNT();
    return n ? INNER(deep(n - 1, x)) + 1 : INNER(leaf(x));
}
// Signals of a timer from here on, and no longer.
static QUIET void tick(int signal, void (*handler)(int), int flags, long microseconds) {
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags | SA_RESTART};
    sigaction(signal, &action, NULL);
    struct itimerval often = {{0, microseconds}, {0, microseconds}};
    setitimer(signal == SIGPROF ? ITIMER_PROF : ITIMER_REAL, &often, NULL);
}
static QUIET void no_ticks(void) {
    struct itimerval none = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &none, NULL);
    setitimer(ITIMER_PROF, &none, NULL);
}
static QUIET void calls_until_seen(void) {
    for (long i = 0; seen < times; i++) expect(deep(8, i) == i * 3 + 8, "a call's result");
    no_ticks();
}

// A profiler and a watchdog look for the function that works.
static QUIET void works(void) {
    calls_until_seen();
    HIDE(times);
}
static QUIET int is_working(void *at) { return _Unwind_FindEnclosingFunction(at) == (void *)works; }
static QUIET _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *found) {
    *(int *)found |= is_working((char *)_Unwind_GetIP(context) - 1);
    return _URC_NO_REASON;
}
static QUIET void profiled(int signal) {
    int found = signal == 0;
    _Unwind_Backtrace(frame, &found);
    wrong += !found;
    seen++;
}
static QUIET void watched(int signal) {
    void *frames[64];
    int found = signal == 0, count = backtrace(frames, 64);
    for (int i = 0; i < count; i++) found |= is_working((char *)frames[i] - 1);
    wrong += !found;
    seen++;
}
static QUIET void prepare_unwinder(void) {
    void *frames[2];
    backtrace(frames, 2);
}
static QUIET void profiler(void) {
    prepare_unwinder();
    tick(SIGPROF, profiled, 0, 300);
    works();
}
static QUIET void watchdog(void) {
    prepare_unwinder();
    tick(SIGALRM, watched, 0, 300);
    works();
}

// Threads are cancelled at any instruction, or where they wait.
static TRACED void clean(void *count) {
    COUNT();
    __atomic_fetch_add((long *)count, 1, __ATOMIC_RELAXED);
}
static volatile long forever = 1;
static TRACED void spins(long n) {
    COUNT();
    if (n) INNER((spins(n - 1), 0));
    else
        while (forever) INNER(leaf(n));
    HIDE(n);
}
static TRACED void waits(void) {
    COUNT();
    while (forever) INNER(pause());
}
static long cleaned;
static TRACED void *cancelled(void *asynchronous) {
    COUNT();
    pthread_cleanup_push(clean, &cleaned);
    pthread_setcanceltype(asynchronous ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
    if (asynchronous) spins(5);
    else waits();
    pthread_cleanup_pop(0);
    return NULL;
}
static QUIET void cancel(void) {
    for (long i = 0; i < times; i++) {
        pthread_t thread;
        void *result;
        expect(pthread_create(&thread, NULL, cancelled, (void *)(i % 4)) == 0, "a thread");
        struct timespec pause = {0, i * 7919 % 500000};
        nanosleep(&pause, NULL);
        pthread_cancel(thread);
        pthread_join(thread, &result);
        wrong += result != PTHREAD_CANCELED;
    }
    printf("cancelled %ld\n", times);
}

// Handlers on an alternate stack interrupt each other there.
static QUIET void inner(int signal) {
    volatile char used[256];
    memset((void *)used, signal, sizeof used);
    seen++;
}
static QUIET void outer(int signal) {
    volatile long guard[16];
    for (int i = 0; i < 16; i++) guard[i] = i + signal;
    long end = seen + times / 5;
    for (long i = 0; seen < end; i++) leaf(i);
    for (int i = 0; i < 16; i++) wrong += guard[i] != i + signal;
}
static QUIET void nested_in(size_t bytes) {
    stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};
    struct sigaction action = {.sa_handler = outer, .sa_flags = SA_ONSTACK | SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    expect(sigaltstack(&stack, NULL) == 0, "an alternate stack");
    tick(SIGALRM, inner, SA_ONSTACK, 200);
    for (int i = 0; i < 5; i++) raise(SIGUSR1);
    no_ticks();
}
// Two frames of the kernel's and little more.
static QUIET void nested_small(void) { nested_in(2 * (size_t)sysconf(_SC_MINSIGSTKSZ) + 2048); }
static QUIET void nested_large(void) { nested_in(64 << 10); }

// A handler that needs much of the stack, which has it.
static QUIET void large(int signal) {
    volatile char used[400 << 10];
    for (size_t i = 0; i < sizeof used; i += 4096) used[i] = (char)signal;
    seen++;
}
static QUIET void large_handler(void) {
    tick(SIGALRM, large, 0, 300);
    calls_until_seen();
}

// Coroutines that a timer switches.
static QUIET void of_green(int number) {
    for (long i = 0; i < 100 * times; i++) wrong += deep(4 + number, i) != i * 3 + 4 + number;
}
static QUIET void green_threads(void) {
    run_timed_coroutines(of_green, 300);
    seen += switches;
}

// Coroutines on stacks of 4 KiB, each with memory below it that nobody may write. The first call of their thread is there.
enum { SMALL = 4096, BELOW = 64 << 10 };
static ucontext_t small, around;
static volatile long results;
static QUIET void of_small(void) {
    for (long i = 0; i < 20; i++) results += deep(3, i);
}
static QUIET void *smalls(void *unused) {
    for (volatile long i = 0; i < times; i++) {
        char *memory = malloc(BELOW + SMALL);
        memset(memory, 0x5a, BELOW);
        getcontext(&small);
        small.uc_stack.ss_sp = memory + BELOW;
        small.uc_stack.ss_size = SMALL;
        small.uc_link = &around;
        makecontext(&small, of_small, 0);
        swapcontext(&around, &small);
        for (long n = 0; n < BELOW; n++) wrong += memory[n] != 0x5a;
        free(memory);
    }
    return unused;
}
static QUIET void small_stacks(void) {
    pthread_t thread;
    expect(pthread_create(&thread, NULL, smalls, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    printf("results %ld\n", results);
}

#ifdef COLLECTED
// A collector that stops threads by a signal, and looks for roots from where its handler stands.
struct node {
    struct node *left, *right;
    long sum;
};
static TRACED struct node *node(struct node *left, struct node *right, long sum) {
    COUNT();
    struct node *made = GC_MALLOC(sizeof *made);
    *made = (struct node){left, right, sum};
    return made;
}
static TRACED struct node *tree(int depth) {
    COUNT();
    if (!depth) return node(NULL, NULL, 1);
    struct node *left = tree(depth - 1), *right = tree(depth - 1);
    return node(left, right, left->sum + right->sum);
}
static TRACED long sum_of(struct node *of) {
    COUNT();
    return of->left ? sum_of(of->left) + sum_of(of->right) : of->sum;
}
static TRACED void *grows(void *unused) {
    COUNT();
    for (long i = 0; i < times || GC_get_gc_no() < 4; i++) wrong += sum_of(tree(10)) != 1024;
    return unused;
}
static QUIET void collector(void) {
    GC_INIT();
    GC_allow_register_threads();
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, grows, NULL);
    grows(NULL);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
}
#endif

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(void);
    } parts[] = {
        {"profiler", profiler},         {"watchdog", watchdog},     {"cancel", cancel},
        {"nested-small", nested_small}, {"nested-large", nested_large}, {"large-handler", large_handler},
        {"green", green_threads},       {"small", small_stacks},
#ifdef COLLECTED
        {"collector", collector},
#endif
    };
    expect(count == 3, "two arguments");
    times = atol(arguments[2]);
    printf("ready\n");
    fflush(stdout);
    // A tracer may be loaded meanwhile: it looks into the program's own code again and again.
    struct pollfd input = {.events = POLLIN};
    while (poll(&input, 1, 1) == 0);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!strcmp(parts[i].name, arguments[1])) parts[i].run();
    printf("%s: %ld wrong, cleaned %ld\n", arguments[1], wrong, cleaned);
    return wrong != 0;
}
