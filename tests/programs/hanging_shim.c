/* Loaded in front of the C library of a collector: what it does with some files hangs for a while, as on a disk that
 * does not answer.
 *
 * SHIM_PATH     files whose path holds this text
 * SHIM_WHILE    calls hang while this file is there
 * SHIM_RENAME   a rename to such a path takes this many microseconds, one half before it is done and one after
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(int fd) {
    const char *text = getenv("SHIM_PATH"), *flag = getenv("SHIM_WHILE");
    char link[64], path[4096];
    if (!text || !flag)
        return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes <= 0)
        return;
    path[bytes] = 0;
    while (strstr(path, text) && access(flag, F_OK) == 0)
        usleep(5000);
}

#define FORWARD(name, type, declared, given)                                                                           \
    type name declared {                                                                                               \
        static type(*next) declared;                                                                                   \
        if (!next)                                                                                                     \
            *(void **)&next = dlsym(RTLD_NEXT, #name);                                                                 \
        hang(fd);                                                                                                      \
        return next given;                                                                                             \
    }

FORWARD(write, ssize_t, (int fd, const void *bytes, size_t count), (fd, bytes, count))
FORWARD(pwrite64, ssize_t, (int fd, const void *bytes, size_t count, off64_t at), (fd, bytes, count, at))
FORWARD(fdatasync, int, (int fd), (fd))
FORWARD(fsync, int, (int fd), (fd))

int rename(const char *from, const char *to) {
    static int (*next)(const char *, const char *);
    const char *text = getenv("SHIM_PATH"), *took = getenv("SHIM_RENAME");
    useconds_t half = text && took && strstr(to, text) ? atoi(took) / 2 : 0;
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "rename");
    usleep(half);
    int done = next(from, to);
    usleep(half);
    return done;
}
