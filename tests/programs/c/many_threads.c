/* Many threads: `many_threads IDLE SHORT`. IDLE threads wait for ever; SHORT at a time are made, run for a moment and end, again
   and again. When all are there it says so; it ends with its input. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static pthread_attr_t attributes;
static int never[2];
static volatile unsigned long sum;

__attribute__((noinline)) static long waits_for_ever(void) {
    char byte;
    return read(never[0], &byte, 1);
}

static void *idle(void *unused) { return waits_for_ever() < 0 ? unused : NULL; }

static void *briefly(void *unused) {
    for (int i = 0; i < 20000; i++) sum += i;
    return unused;
}

static void start(pthread_t *thread, void *(*function)(void *), const char *name) {
    int error = pthread_create(thread, &attributes, function, NULL);
    if (error) {
        fprintf(stderr, "many_threads: pthread_create: %d\n", error);
        exit(3);
    }
    pthread_setname_np(*thread, name);
}

static void *maker(void *count) {
    long at_once = (long)count;
    pthread_t threads[at_once];
    for (;;) {
        for (long i = 0; i < at_once; i++) start(&threads[i], briefly, "brief");
        for (long i = 0; i < at_once; i++) pthread_join(threads[i], NULL);
        usleep(1000);
    }
    return NULL;
}

int main(int count, char **arguments) {
    char byte;
    pthread_t thread;
    if (count != 3 || pipe(never)) return 2;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    for (int i = atoi(arguments[1]); i > 0; i--) start(&thread, idle, "idle");
    long at_once = atol(arguments[2]);
    if (at_once) pthread_create(&thread, NULL, maker, (void *)at_once);
    puts("ready");
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    return 0;
}
