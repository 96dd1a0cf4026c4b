// Functions that end in a jump to one that asks who called it. Says of each whether it got what it
// should: once, and again for each byte of standard input.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))
#define UNTRACED __attribute__((patchable_function_entry(0)))

typedef void *(*open_fn)(const char *, int);
open_fn volatile opener = dlopen;

APART void *load(const char *path) { return dlopen(path, RTLD_NOW); }
APART void *load_if(const char *path, int wanted) {
    if (wanted)
        return dlopen(path, RTLD_LAZY);
    return 0;
}
APART void *load_in(const char *path) { return dlmopen(LM_ID_BASE, path, RTLD_NOW); }
APART UNTRACED static void *inner(const char *path) {
    return dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}
APART void *load_outer(const char *path) { return inner(path + 1); }
APART void *load_by_pointer(const char *path) { return opener(path, RTLD_NOW); }
APART void *next(const char *name) { return dlsym(RTLD_NEXT, name); }
APART void *next_with(const char *name) { return dlvsym(RTLD_NEXT, name, "MARKER_1"); }
APART int plain(int number) {
    __asm__ volatile("");
    return number + 1;
}

APART static void say(const char *what, void *found) {
    printf("%s: %s\n", what, found ? "ok" : "nothing");
    fflush(stdout);
}

APART static void all(void) {
    say("load", load("libplug.so"));
    say("load_if", load_if("libplug.so", plain(0)));
    say("load_in", load_in("libplug.so"));
    say("load_outer", load_outer("/libplug.so"));
    say("load_by_pointer", load_by_pointer("libplug.so"));
    say("next", next("marker"));
    say("next_with", next_with("marker"));
}

int main(void) {
    struct pollfd input = {.fd = 0, .events = POLLIN};
    all();
    for (char c;;) {
        /* Its thread comes back here all the while: an attaching tool needs that. */
        if (poll(&input, 1, 10) == 0)
            continue;
        if (read(0, &c, 1) != 1)
            return 0;
        all();
    }
}
