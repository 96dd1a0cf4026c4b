// Threads that all live at one time, with a call or two each. Argument: how many.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_barrier_t all_there;

__attribute__((noinline)) long once(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}
__attribute__((noinline)) void *idle(void *argument) {
    once((long)argument);
    pthread_barrier_wait(&all_there);
    return NULL;
}
int main(int count, char **arguments) {
    long threads = count > 1 ? atol(arguments[1]) : 10;
    pthread_t *all = calloc((size_t)threads, sizeof *all);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_barrier_init(&all_there, NULL, (unsigned)threads + 1);
    for (long i = 0; i < threads; i++)
        if (pthread_create(&all[i], &small, idle, (void *)i) != 0) return 3;
    pthread_barrier_wait(&all_there);
    for (long i = 0; i < threads; i++) pthread_join(all[i], NULL);
    return 0;
}
