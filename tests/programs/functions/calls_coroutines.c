// Stacks that change hands: on the heap, inside the thread's own stack, from thread to thread.
#include "calls.h"
#include <pthread.h>
#include <stdlib.h>
#include <ucontext.h>

enum { STACK = 64 << 10, ROUTINES = 4, ROUNDS = 200 };

typedef struct {
    ucontext_t self, *resumer;
    long value;
    int done;
} routine;
static _Thread_local ucontext_t here;
static _Thread_local routine *current;

static TRACED long work(long n) {
    COUNT();
    return n < 2 ? n : work(n - 1) + INNER(work(n - 2));
}
// Neither may know in which thread it goes on.
static TRACED void suspend(routine *r) {
    COUNT();
    swapcontext(&r->self, r->resumer);
}
static TRACED long step(routine *r, int depth) {
    COUNT();
    if (depth > 0) return INNER(step(r, depth - 1)) + 1;
    suspend(r);
    return work(5);
}
static TRACED void body(routine *r) {
    COUNT();
    for (int i = 0; i < ROUNDS; i++) r->value += step(r, i % 6);
    r->done = 1;
    suspend(r);
}
static QUIET void begin(int low, int high) {
    body((routine *)((unsigned long)(unsigned)low | (unsigned long)(unsigned)high << 32));
    _exit(97);
}
static QUIET void make(routine *r, char *stack) {
    memset(r, 0, sizeof *r);
    getcontext(&r->self);
    r->self.uc_stack.ss_sp = stack;
    r->self.uc_stack.ss_size = STACK;
    r->self.uc_link = NULL;
    makecontext(&r->self, (void (*)(void))begin, 2, (int)(long)r, (int)((unsigned long)r >> 32));
}
static TRACED void resume(routine *r) {
    COUNT();
    ucontext_t *mine = &here;
    r->resumer = mine;
    current = r;
    swapcontext(mine, &r->self);
}
static TRACED int resume_at(routine *r, int depth) {
    COUNT();
    if (depth > 0) return INNER(resume_at(r, depth - 1));
    resume(r);
    return r->done;
}

static TRACED long run_all(routine *all, int count) {
    COUNT();
    long sum = 0;
    int open = count;
    for (int i = 0; open > 0; i++) {
        routine *r = &all[i % count];
        if (!r->done) open -= resume_at(r, i % 3);
        sum += work(3);
    }
    for (int i = 0; i < count; i++) sum += all[i].value;
    return sum;
}
static TRACED long on_heap(void) {
    COUNT();
    routine all[ROUTINES];
    char *stacks = malloc((size_t)ROUTINES * STACK);
    for (int i = 0; i < ROUTINES; i++) make(&all[i], stacks + i * STACK);
    long sum = run_all(all, ROUTINES);
    free(stacks);
    return sum;
}
static TRACED long on_own_stack(void) {
    COUNT();
    routine all[ROUTINES];
    char stacks[ROUTINES * STACK];
    for (int i = 0; i < ROUTINES; i++) make(&all[i], stacks + i * STACK);
    return run_all(all, ROUTINES);
}

static routine wanderer;
static pthread_barrier_t turn;
static TRACED void *takes_turns(void *argument) {
    COUNT();
    for (int i = 0; i < 2 * ROUNDS + 2; i++) {
        if (i % 2 == (long)argument && !wanderer.done) resume_at(&wanderer, i % 4);
        pthread_barrier_wait(&turn);
    }
    return NULL;
}
static TRACED void wander(char *stack) {
    COUNT();
    pthread_t threads[2];
    make(&wanderer, stack);
    pthread_barrier_init(&turn, NULL, 2);
    for (long i = 0; i < 2; i++) pthread_create(&threads[i], NULL, takes_turns, (void *)i);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    printf("wandered %ld %d\n", wanderer.value, wanderer.done);
}

int main(void) {
    printf("heap %ld\n", on_heap());
    printf("own %ld\n", on_own_stack());
    char *stack = malloc(STACK), own[STACK];
    wander(stack);
    free(stack);
    wander(own);
    for (int i = 0; i < 10; i++) work(8);
    return 0;
}
