/* Preloaded, it gives a program a second thread that does nothing: what that costs by itself. */
#include <pthread.h>
#include <unistd.h>

static void *nap(void *nothing) {
    for (;;) pause();
    return nothing;
}

__attribute__((constructor)) static void start(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, nap, NULL);
}
