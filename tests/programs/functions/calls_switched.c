// Calls that go on while their sites are switched, their results checked. Each byte of the input is
// good for this number of turns of each thread; where it ends, they end.
#include "calls.h"
#include <pthread.h>

enum { THREADS = 3, DEPTH = 5, TURNS = 500 };
static int has_ended;
static long allowed;

static TRACED long leaf(long n) {
    COUNT();
    return n * 3;
}
static TRACED long in_place_of_a_return(long n) {
    COUNT();
    return leaf(n + 1);
}
static TRACED long middle(long n) {
    COUNT();
    return INNER(leaf(n)) + INNER(in_place_of_a_return(n));
}
static TRACED long descend(long depth, long n) {
    COUNT();
    return depth == 0 ? middle(n) : INNER(descend(depth - 1, n)) + 1;
}
static QUIET void *work(void *argument) {
    for (long n = 0; !__atomic_load_n(&has_ended, __ATOMIC_RELAXED); usleep(50)) {
        if (n == __atomic_load_n(&allowed, __ATOMIC_RELAXED)) continue;
        expect(descend(DEPTH, n) == 6 * n + 3 + DEPTH, "a result");
        n++;
    }
    return argument;
}

int main(void) {
    pthread_t threads[THREADS];
    char byte;
    for (long i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    while (read(0, &byte, 1) > 0) __atomic_fetch_add(&allowed, TURNS, __ATOMIC_RELAXED);
    __atomic_store_n(&has_ended, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    printf("right\n");
    return 0;
}
