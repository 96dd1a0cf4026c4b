/* Loads the shared object of its first argument, waits until function tracers have followed it, and
 * runs its with_functions() with the others. With -DBOTH it is linked with with_functions.c, and runs
 * its own with_functions() at the same time. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

typedef int runs(int count, char **words);

struct arguments {
    int count;
    char **words;
};

#ifdef BOTH
runs with_functions;

static void *own(void *argument) {
    const struct arguments *const given = argument;
    with_functions(given->count, given->words);
    return NULL;
}
#endif

int main(int count, char **words) {
#ifdef BOTH
    /* The object finds the shared library, not what this program exports. */
    const int flags = RTLD_NOW | RTLD_DEEPBIND;
#else
    const int flags = RTLD_NOW;
#endif
    void *const object = count > 1 ? dlopen(words[1], flags) : NULL;
    if (object == NULL) {
        fprintf(stderr, "no shared object: %s\n", dlerror());
        return 2;
    }
    runs *function;
    struct arguments given = {count - 1, words + 1};
    usleep(500 * 1000);
    *(void **)&function = dlsym(object, "with_functions");
    if (function == NULL) {
        return 2;
    }
#ifdef BOTH
    pthread_t thread;
    if (pthread_create(&thread, NULL, own, &given) != 0) {
        return 2;
    }
#endif
    const int result = function(given.count, given.words);
#ifdef BOTH
    pthread_join(thread, NULL);
#endif
    return result;
}
