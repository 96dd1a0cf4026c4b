// Functions that end in a jump by a pointer that dlsym gave. The program's only import of its kind
// is dlsym. Says of each function whether it got what it should.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

#define APART __attribute__((noinline, noclone))

typedef void *(*open_fn)(const char *, int);
static open_fn kept;

APART void *load_looked_up(const char *path) {
    if (!kept)
        kept = (open_fn)dlsym(RTLD_DEFAULT, "dlopen");
    return kept(path, RTLD_NOW);
}
APART void *load_kept(const char *path) { return kept(path, RTLD_NOW); }
APART void *load_given(open_fn given, const char *path) { return given(path, RTLD_NOW); }

static void say(const char *what, void *found) {
    printf("%s: %s\n", what, found ? "ok" : "nothing");
}

int main(void) {
    say("load_looked_up", load_looked_up("libplug.so"));
    say("load_kept", load_kept("libplug.so"));
    say("load_given", load_given(kept, "libplug.so"));
    return 0;
}
