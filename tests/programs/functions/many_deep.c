/* Threads that all recurse at once, and check what they return: `many_deep` says how many results are wrong. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define THREADS 20
#define ROUNDS 200
#define DEPTH 20

static volatile int steps;

__attribute__((noinline)) static long deep(long depth, long id) {
    if (depth == 0) {
        if (id % 3 == 0) usleep(100);
        return id;
    }
    long below = deep(depth - 1, id);
    steps++;
    return below + 1;
}

static void *work(void *id) {
    long wrong = 0;
    for (int round = 0; round < ROUNDS; round++)
        wrong += deep(DEPTH, (long)id) != (long)id + DEPTH;
    return (void *)wrong;
}

int main(void) {
    pthread_t threads[THREADS];
    long wrong = 0;
    for (long id = 0; id < THREADS; id++)
        if (pthread_create(&threads[id], NULL, work, (void *)id)) return 2;
    for (int id = 0; id < THREADS; id++) {
        void *found;
        pthread_join(threads[id], &found);
        wrong += (long)found;
    }
    printf("%ld wrong\n", wrong);
    return wrong != 0;
}
