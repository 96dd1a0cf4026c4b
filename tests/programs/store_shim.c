/* Loaded in front of the C library of a collector: writes down what it does to its store, and what it says to
 * its streamers, in the order in which that happens, whichever thread does it.
 *
 * SHIM_STORE    the store's directory, without links in it
 * SHIM_LOG      file for the log: a header of 96 bytes, then `bytes` bytes, for each call
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC, TRUNCATE, RENAME, UNLINK, CREATE, SYNC_DIRECTORY, MAKE_DIRECTORY, SAID };

struct entry {
    uint32_t kind, file; /* number of the file: its inode; of what is said, the socket's descriptor */
    uint64_t offset, bytes;
    uint64_t unused[9];
};
_Static_assert(sizeof(struct entry) == 96, "as the test reads it");

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;

static void note(enum kind kind, uint32_t file, uint64_t offset, const void *data, uint64_t bytes) {
    struct entry entry = {.kind = kind, .file = file, .offset = offset, .bytes = bytes};
    int log = syscall(SYS_openat, AT_FDCWD, getenv("SHIM_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (syscall(SYS_write, log, &entry, sizeof entry) < 0 || syscall(SYS_write, log, data, bytes) < 0)
        _exit(99);
    syscall(SYS_close, log);
}

/* The part of a path below the store; NULL: it is elsewhere. */
static const char *below(const char *path) {
    const char *store = getenv("SHIM_STORE");
    size_t length = store ? strlen(store) : 0;
    if (!length || strncmp(path, store, length) != 0)
        return NULL;
    return path[length] == '/' ? path + length + 1 : path[length] ? NULL : path + length;
}

/* Whether a descriptor is a file or a directory of the store; its path below that. */
static int is_ours(int fd, char *path, struct stat *about) {
    char link[64], whole[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, whole, sizeof whole - 1);
    if (length < 0)
        return 0;
    whole[length] = 0;
    const char *part = below(whole);
    if (!part || fstat(fd, about) != 0)
        return 0;
    strcpy(path, part);
    return 1;
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    const char *part = flags & O_CREAT ? below(path) : NULL;
    if (!part)
        return syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    pthread_mutex_lock(&one_at_a_time);
    int fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    int error = errno;
    struct stat about;
    if (fd >= 0 && fstat(fd, &about) == 0 && about.st_size == 0)
        note(CREATE, about.st_ino, 0, part, strlen(part));
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return fd;
}

/* Messages of the protocol: blocks of kinds from 32 on. */
static void note_said(int socket, const unsigned char *data, size_t bytes) {
    if (bytes < 64 || memcmp(data, "RMKB", 4) != 0 || data[4] < 32)
        return;
    pthread_mutex_lock(&one_at_a_time);
    note(SAID, socket, data[4], data + 64, bytes - 64);
    pthread_mutex_unlock(&one_at_a_time);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags) {
    note_said(fd, data, bytes);
    return syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    char path[4096];
    struct stat about;
    if (!is_ours(fd, path, &about)) {
        note_said(fd, data, bytes);
        return syscall(SYS_write, fd, data, bytes);
    }
    pthread_mutex_lock(&one_at_a_time);
    uint64_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = syscall(SYS_write, fd, data, bytes);
    int error = errno;
    if (written > 0)
        note(WRITE, about.st_ino, offset, data, written);
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return written;
}

static int sync_with(long number, int fd) {
    char path[4096];
    struct stat about;
    if (!is_ours(fd, path, &about))
        return syscall(number, fd);
    pthread_mutex_lock(&one_at_a_time);
    int done = syscall(number, fd), error = errno;
    if (done == 0 && S_ISDIR(about.st_mode))
        note(SYNC_DIRECTORY, 0, 0, path, strlen(path));
    else if (done == 0)
        note(SYNC, about.st_ino, 0, "", 0);
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return done;
}

int fdatasync(int fd) { return sync_with(SYS_fdatasync, fd); }

int fsync(int fd) { return sync_with(SYS_fsync, fd); }

int ftruncate64(int fd, off64_t bytes) {
    char path[4096];
    struct stat about;
    if (!is_ours(fd, path, &about))
        return syscall(SYS_ftruncate, fd, bytes);
    pthread_mutex_lock(&one_at_a_time);
    int done = syscall(SYS_ftruncate, fd, bytes), error = errno;
    if (done == 0)
        note(TRUNCATE, about.st_ino, bytes, "", 0);
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return done;
}

/* A call on names; both, with a zero between, if there are two. */
static int named(enum kind kind, const char *first, const char *second, long number, mode_t mode) {
    const char *from = below(first), *to = second ? below(second) : NULL;
    pthread_mutex_lock(&one_at_a_time);
    int done = second ? syscall(number, first, second) : syscall(number, first, mode), error = errno;
    if (done == 0 && from && (to || !second)) {
        char names[8192];
        int length = snprintf(names, sizeof names, "%s%c%s", from, 0, to ? to : "");
        note(kind, 0, 0, names, second ? length : (int)strlen(from));
    }
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return done;
}

int rename(const char *from, const char *to) { return named(RENAME, from, to, SYS_rename, 0); }

int unlink(const char *path) { return named(UNLINK, path, NULL, SYS_unlink, 0); }

int mkdir(const char *path, mode_t mode) { return named(MAKE_DIRECTORY, path, NULL, SYS_mkdir, mode); }
