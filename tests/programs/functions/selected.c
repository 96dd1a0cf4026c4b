// Calls of known nesting, by every way into a function and out of it; the same in every run. Argument: which part.
#include "calls.h"
#include "switch_stacks.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

static jmp_buf back;
static volatile long sum;

static TRACED long leaf(long n) {
    COUNT();
    HIDE(n);
    return n * 3;
}
static TRACED long branch(long n) {
    COUNT();
    return n == 0 ? leaf(n) + 1 : INNER(branch(n - 1)) + INNER(branch(n - 1)) + leaf(n);
}
// The function that is asked for.
static TRACED long root(long n) {
    COUNT();
    return n == 0 ? leaf(1) + 1 : INNER(branch(n)) + INNER(root(n - 1)) + 1;
}

// Calls in the place of a return.
static TRACED long tail_end(long n) {
    COUNT();
    return INNER(root(n)) + 7;
}
static TRACED long tail_middle(long n) {
    COUNT();
    sum += leaf(n);
    return tail_end(n);
}
static TRACED long tail_begin(long n) {
    COUNT();
    return tail_middle(n);
}
static TRACED long tail_calls(void) {
    COUNT();
    return INNER(tail_begin(1)) + INNER(tail_begin(2));
}

// Calls that are left by a jump, in the middle of what is asked for and around it.
#pragma GCC diagnostic ignored "-Winfinite-recursion"
static TRACED void fall(long n) {
    COUNT();
    if (n == 0) longjmp(back, 1);
    sum += leaf(n);
    fall(n - 1);
    sum++;
}
static TRACED void root_falls(long n) {
    COUNT();
    sum += leaf(n);
    fall(n);
    sum++;
}
static TRACED long catch_jump(long n) {
    COUNT();
    if (setjmp(back) == 0) n & 1 ? root_falls(n) : fall(n);
    return INNER(branch(1)) + leaf(n);
}
static TRACED long jumps(void) {
    COUNT();
    for (long n = 0; n < 6; n++) sum += catch_jump(n);
    return sum;
}

// Handlers on the thread's own stack and on the alternate one.
static TRACED void handler(int number) {
    COUNT();
    sum += number == SIGUSR1 ? branch(1) : root(1);
}
static TRACED long deep(long n) {
    COUNT();
    if (n == 0) return raise(SIGUSR1) + raise(SIGUSR2) + leaf(n);
    return INNER(deep(n - 1)) + 1;
}
static TRACED long signals(void) {
    COUNT();
    static char alternate[256 << 10];
    stack_t stack = {.ss_sp = alternate, .ss_size = sizeof alternate};
    expect(sigaltstack(&stack, NULL) == 0, "sigaltstack");
    struct sigaction action = {.sa_handler = handler};
    sigaction(SIGUSR1, &action, NULL);
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR2, &action, NULL);
    return INNER(deep(0)) + INNER(deep(3)) + INNER(root(1));
}

// Coroutines that are resumed at different depths, in the middle of their calls.
enum { STACK = 64 << 10, ROUTINES = 3 };
typedef struct {
    void *sp;
    long id;
    int done;
} coroutine;
static void *main_sp;
static coroutine routines[ROUTINES];

static QUIET void suspend(coroutine *c) { switch_stacks(&c->sp, main_sp); }
static TRACED long nest(coroutine *c, long depth) {
    COUNT();
    if (depth > 0) return INNER(nest(c, depth - 1)) + leaf(depth);
    suspend(c);
    return INNER(root(1)) + leaf(c->id);
}
static TRACED void body(coroutine *c) {
    COUNT();
    for (long i = 0; i < 4; i++) sum += nest(c, i);
}
static QUIET void begin(coroutine *c) {
    body(c);
    c->done = 1;
    suspend(c);
}
static TRACED void resume(coroutine *c) {
    COUNT();
    if (!c->done) switch_stacks(&main_sp, c->sp);
    sum += leaf(c->id);
}
static TRACED void resume_deep(long n) {
    COUNT();
    if (n > 0) resume_deep(n - 1);
    else
        for (int i = 0; i < ROUTINES; i++) resume(&routines[i]);
    sum++;
}
static TRACED long coroutines(void) {
    COUNT();
    // Far from each other: none looks like a part of another.
    static char stacks[ROUTINES][2][STACK];
    for (long i = 0; i < ROUTINES; i++) {
        void **top = (void **)((unsigned long)(stacks[i][0] + STACK) & ~15UL);
        *--top = NULL;
        *--top = NULL;
        *--top = (void *)first_frame;
        *--top = NULL;
        *--top = &routines[i];
        *--top = (void *)begin;
        for (int n = 0; n < 3; n++) *--top = NULL;
        routines[i] = (coroutine){.sp = top, .id = i};
    }
    for (long n = 0; n < 6; n++) resume_deep(n % 3);
    return sum;
}

static TRACED void *worker(void *argument) {
    COUNT();
    sum += branch((long)argument) + INNER(root(1));
    return NULL;
}
static TRACED long threads(void) {
    COUNT();
    for (long n = 0; n < 3; n++) {
        pthread_t thread;
        pthread_create(&thread, NULL, worker, (void *)n);
        pthread_join(thread, NULL);
    }
    return sum;
}

// The child goes on in the middle of calls.
static WHOLE long in_child(long n) {
    COUNT();
    return INNER(leaf(n)) + INNER(leaf(n + 1));
}
static TRACED void forks(void) {
    COUNT();
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        in_child(1);
        exit(0);
    }
    int status = 1;
    expect(waitpid(child, &status, 0) == child && status == 0, "the child");
    sum += in_child(1);
}

// Durations: those of `slow` and of what is around it are long.
static TRACED void quick(void) {
    COUNT();
    sum++;
}
static WHOLE void slow(long n) {
    COUNT();
    usleep(20000);
    sum += n;
}
static TRACED void mixed(long n) {
    COUNT();
    for (long i = 0; i < 1000; i++) quick();
    if (n & 1) slow(n);
    sum++;
}
static TRACED void durations(void) {
    COUNT();
    for (long n = 0; n < 8; n++) mixed(n);
    sum++;
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "";
    if (strcmp(part, "calls") == 0) sum += branch(3) + INNER(root(3)) + INNER(tail_calls());
    if (strcmp(part, "jumps") == 0) sum += jumps();
    if (strcmp(part, "signals") == 0) sum += signals();
    if (strcmp(part, "coroutines") == 0) sum += coroutines();
    if (strcmp(part, "threads") == 0) sum += threads();
    if (strcmp(part, "fork") == 0) forks();
    if (strcmp(part, "durations") == 0) durations();
    printf("%ld\n", sum);
    return 0;
}
