// Coroutines with a switch written by hand. Argument: which part, and how often.
#include "calls.h"
#include "switch_stacks.h"
#include <setjmp.h>
#include <stdlib.h>
#include <time.h>

enum { STACK = 32 << 10, MANY = 300 };

typedef struct coroutine {
    void *sp;
    char *stack;
    void (*run)(struct coroutine *);
    long value, id;
    int done;
    // What was on a stack that others use until it goes on.
    char *kept;
    size_t kept_bytes;
} coroutine;

static void *main_sp;

static QUIET void begin(coroutine *c);
static QUIET void make(coroutine *c, char *stack, void (*run)(coroutine *), long id) {
    *c = (coroutine){.stack = stack, .run = run, .id = id};
    void **top = (void **)((unsigned long)(stack + STACK) & ~15UL);
    *--top = NULL;
    *--top = NULL;
    *--top = (void *)first_frame;
    *--top = NULL;            // rbp
    *--top = c;               // rbx
    *--top = (void *)begin;   // r12
    for (int i = 0; i < 3; i++) *--top = NULL;
    c->sp = top;
}
static QUIET void suspend(coroutine *c) { switch_stacks(&c->sp, main_sp); }
static QUIET void begin(coroutine *c) {
    c->run(c);
    c->done = 1;
    suspend(c);
}
static QUIET void resume(coroutine *c) { switch_stacks(&main_sp, c->sp); }

static TRACED long leaf(long n) {
    COUNT();
    HIDE(n);
    return n * 3;
}
static TRACED long nest(coroutine *c, long depth) {
    COUNT();
    if (depth > 0) return INNER(nest(c, depth - 1)) + 1;
    suspend(c);
    return leaf(c->id);
}
static TRACED void rounds(coroutine *c) {
    COUNT();
    for (long i = 0; i <= c->id % 13; i++) c->value += nest(c, (c->id + i) % 7);
}

// Coroutines that end in another order than they began.
static TRACED long out_of_order(void) {
    COUNT();
    static coroutine all[MANY];
    char *stacks = malloc((size_t)MANY * STACK);
    for (long i = 0; i < MANY; i++) make(&all[i], stacks + i * STACK, rounds, i);
    long sum = 0;
    int open = MANY;
    for (unsigned long n = 1; open > 0; n = n * 6364136223846793005UL + 1442695040888963407UL) {
        coroutine *c = &all[(n >> 33) % MANY];
        if (c->done) continue;
        resume(c);
        open -= c->done;
    }
    for (int i = 0; i < MANY; i++) sum += all[i].value;
    free(stacks);
    return sum;
}

// 600 calls of `nest`, all of which end.
static TRACED void fifty(coroutine *c) {
    COUNT();
    for (int i = 0; i < 50; i++) nest(c, i % 5);
}
static TRACED void six_hundred(void) {
    COUNT();
    coroutine all[4];
    char *stacks[4];
    for (int i = 0; i < 4; i++) make(&all[i], stacks[i] = malloc(STACK), fifty, i);
    for (int k = 0; k < 51; k++)
        for (int i = 0; i < 4; i++) resume(&all[i]);
    for (int i = 0; i < 4; i++) {
        expect(all[i].done, "a coroutine that ends");
        free(stacks[i]);
    }
}

// Coroutines that are dropped in the middle of calls. Their memory is used again.
static TRACED void other(coroutine *c) {
    COUNT();
    leaf(1);
    c->value = leaf(2) + INNER(nest(c, 3));
}
static TRACED long dropped(void) {
    COUNT();
    char *stack = malloc(STACK);
    long sum = 0;
    for (long i = 0; i < 400; i++) {
        coroutine c;
        make(&c, stack, i % 3 ? rounds : other, i);
        for (int k = 0; k <= i % 4 && !c.done; k++) resume(&c);
        sum += c.value;
    }
    free(stack);
    return sum;
}

// Several coroutines on one stack: what is on it is copied away and back.
static TRACED long through_one(coroutine *c, long n) {
    COUNT();
    suspend(c);
    return leaf(n) + 1;
}
static TRACED long through_two(coroutine *c, long n) {
    COUNT();
    long a = INNER(leaf(n)), b = INNER(through_one(c, n + 1));
    return a + b;
}
static TRACED void ways(coroutine *c) {
    COUNT();
    for (long i = 0; i < 40; i++) {
        switch ((c->id + i) % 4) {
        case 0: c->value += INNER(through_one(c, i)); break;
        case 1: c->value += INNER(through_two(c, i)); break;
        case 2: c->value += INNER(nest(c, i % 5)); break;
        default: c->value += INNER(leaf(i)) + INNER(through_one(c, i)) + INNER(through_two(c, i));
        }
    }
}
static QUIET void resume_copied(coroutine *c, char *end) {
    if (c->kept) memcpy(end - c->kept_bytes, c->kept, c->kept_bytes);
    resume(c);
    c->kept_bytes = (size_t)(end - (char *)c->sp);
    c->kept = realloc(c->kept, c->kept_bytes);
    memcpy(c->kept, c->sp, c->kept_bytes);
    memset(c->sp, 0x55, c->kept_bytes);
}
static TRACED long copied(void) {
    COUNT();
    enum { SOME = 7 };
    coroutine all[SOME];
    char *stack = malloc(STACK);
    long sum = 0, open = SOME;
    for (long i = 0; i < SOME; i++) {
        make(&all[i], stack, ways, i);
        all[i].kept_bytes = (size_t)(stack + STACK - (char *)all[i].sp);
        all[i].kept = malloc(all[i].kept_bytes);
        memcpy(all[i].kept, all[i].sp, all[i].kept_bytes);
    }
    for (unsigned long n = 1; open > 0; n = n * 6364136223846793005UL + 1442695040888963407UL) {
        coroutine *c = &all[(n >> 33) % SOME];
        if (c->done) continue;
        resume_copied(c, stack + STACK);
        open -= c->done;
    }
    for (int i = 0; i < SOME; i++) {
        sum += all[i].value;
        free(all[i].kept);
    }
    free(stack);
    return sum;
}

// Calls that are left by a jump, then others from other places with the same slots.
static jmp_buf back;
static void (*volatile falls_on)(long);
static TRACED void falls(long depth) {
    COUNT();
    HIDE(depth);
    if (depth <= 0) longjmp(back, 1);
    falls_on(depth - 1);
    HIDE(depth);
}
static TRACED void jumps(coroutine *c) {
    COUNT();
    falls_on = falls;
    for (volatile long i = 0; i < 100; i++) {
        if (setjmp(back) == 0) falls(i % 6);
        c->value += INNER(leaf(i)) + INNER(leaf(i + 1));
        c->value += INNER(nest(c, i % 3));
    }
}
// Jumps in the place of a call and a return.
static TRACED long tail_last(long n) {
    COUNT();
    return n + 1;
}
static TRACED long tail_middle(long n) {
    COUNT();
    HIDE(n);
    return tail_last(n + 1);
}
static TRACED long tail_first(long n) {
    COUNT();
    HIDE(n);
    return tail_middle(n + 1);
}
static TRACED void tails(coroutine *c) {
    COUNT();
    for (long i = 0; i < 100; i++) {
        c->value += INNER(tail_first(i));
        if (i % 10 == 0) nest(c, 1);
    }
}
static TRACED long alone(void (*run)(coroutine *)) {
    COUNT();
    coroutine c;
    char *stack = malloc(STACK);
    make(&c, stack, run, 1);
    while (!c.done) resume(&c);
    free(stack);
    return c.value;
}

// A call that lasts while its coroutine is suspended, and one inside it that does not.
static QUIET void wait_ms(long ms) {
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ms * 1000000);
}
static TRACED void works(long ms) {
    COUNT();
    wait_ms(ms);
}
static TRACED void sleeps(coroutine *c) {
    COUNT();
    works(2);
    suspend(c);
    works(2);
    HIDE(c); // No jump in the place of the call.
}
static TRACED void timed(void) {
    COUNT();
    coroutine all[3];
    char *stacks[3];
    for (int i = 0; i < 3; i++) make(&all[i], stacks[i] = malloc(STACK), sleeps, i);
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 3; i++) resume(&all[i]);
        wait_ms(10);
    }
    for (int i = 0; i < 3; i++) free(stacks[i]);
}

int main(int count, char **parts) {
    const char *part = count > 1 ? parts[1] : "";
    if (!strcmp(part, "timed")) timed();
    else if (!strcmp(part, "600")) six_hundred();
    else if (!strcmp(part, "dropped")) printf("dropped %ld\n", dropped());
    else if (!strcmp(part, "copied")) printf("copied %ld\n", copied());
    else if (!strcmp(part, "jumps")) printf("jumps %ld\n", alone(jumps));
    else {
        printf("out of order %ld\n", out_of_order());
        printf("tails %ld\n", alone(tails));
    }
    return 0;
}
