/* Loads the shared object of its first argument, waits until function tracers have followed it, and
 * runs its with_functions() with the others. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

typedef int runs(int count, char **words);

int main(int count, char **words) {
    void *const object = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
    if (object == NULL) {
        fprintf(stderr, "no shared object: %s\n", dlerror());
        return 2;
    }
    runs *function;
    usleep(500 * 1000);
    *(void **)&function = dlsym(object, "with_functions");
    return function == NULL ? 2 : function(count - 1, words + 1);
}
