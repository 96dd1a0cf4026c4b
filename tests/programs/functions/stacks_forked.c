/* Forks on a coroutine while other threads allocate, begin and end: stacks_forked ROUNDS. The child goes
   on on that coroutine, and runs one of its own. With a second word it takes a mutex that another
   thread may hold at the fork, which hangs in any program. */
#include "switch_stacks.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, noclone))
#define QUIET __attribute__((noinline, noclone, patchable_function_entry(0)))

enum { STACK = 64 << 10, LIMIT_S = 30 };

typedef struct coroutine {
    void *sp, *back;
    char *stack;
    void (*run)(struct coroutine *);
    long value;
    int done;
} coroutine;

static volatile int is_over;
static int takes_mutex;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static QUIET void suspend(coroutine *c) { switch_stacks(&c->sp, c->back); }
static QUIET void resume(coroutine *c) { switch_stacks(&c->back, c->sp); }
static QUIET void begin(coroutine *c) {
    c->run(c);
    c->done = 1;
    suspend(c);
}
static QUIET void make(coroutine *c, char *stack, void (*run)(coroutine *)) {
    *c = (coroutine){.stack = stack, .run = run};
    void **top = (void **)((unsigned long)(stack + STACK) & ~15UL);
    *--top = NULL;
    *--top = NULL;
    *--top = (void *)first_frame;
    *--top = NULL;          // rbp
    *--top = c;             // rbx
    *--top = (void *)begin; // r12
    for (int i = 0; i < 3; i++) *--top = NULL;
    c->sp = top;
}

static TRACED long leaf(long n) {
    __asm__ volatile("" : "+r"(n));
    return n * 3;
}
static TRACED long nest(coroutine *c, long depth) {
    if (depth > 0) {
        long inner = nest(c, depth - 1);
        __asm__ volatile("" : "+r"(inner));
        return inner + 1;
    }
    suspend(c);
    return leaf(depth);
}
static TRACED void twice(coroutine *c) {
    c->value += nest(c, 2);
    c->value += nest(c, 3);
}
static QUIET void run_to_end(coroutine *c) {
    while (!c->done) resume(c);
}
static TRACED void in_child(void) {
    coroutine own;
    char *stack = malloc(STACK);
    make(&own, stack, twice);
    run_to_end(&own);
    free(stack);
    if (takes_mutex) pthread_mutex_lock(&mutex);
    _exit(own.value == 5 ? 0 : 1);
}
static TRACED void forks(coroutine *c) {
    c->value += nest(c, 3);
    pid_t child = fork();
    if (child == 0) {
        alarm(LIMIT_S);
        in_child();
    }
    int status = -1;
    waitpid(child, &status, 0);
    if (status) {
        fprintf(stderr, "the child ended with %x\n", status);
        _exit(5);
    }
    c->value += nest(c, 2);
}

static QUIET void *allocates(void *nothing) {
    for (unsigned n = 0; !is_over; n++) {
        pthread_mutex_lock(&mutex);
        free(malloc(64 + n % 1000));
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}
static TRACED void *short_lived(void *number) {
    leaf((long)number);
    return NULL;
}
static QUIET void *begins_threads(void *nothing) {
    while (!is_over) {
        pthread_t thread;
        if (!pthread_create(&thread, NULL, short_lived, nothing)) pthread_join(thread, NULL);
    }
    return nothing;
}

int main(int count, char **words) {
    takes_mutex = count > 2;
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, allocates, NULL);
    pthread_create(&threads[1], NULL, begins_threads, NULL);
    char *stack = malloc(STACK);
    for (int round = 0; round < atoi(words[count > 1]); round++) {
        coroutine c;
        make(&c, stack, forks);
        run_to_end(&c);
        if (c.value != 5) return 4;
    }
    is_over = 1;
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 0;
}
