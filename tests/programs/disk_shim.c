/* Loaded in front of the C library of a recorder: makes one chosen call on its dump fail, and writes down what
 * was done to the dump, with what the recorder had released by then.
 *
 * SHIM_DUMP     paths that start with this are the dump; its directory is watched, too
 * SHIM_CALL     write, fdatasync, fsync, ftruncate, rename, open, unlink: the call that fails
 * SHIM_WHEN     from which call on, counted from 1; SHIM_TIMES: how many of them (default 1)
 * SHIM_ERROR    errno that they fail with; 0: a write is short, by all but SHIM_SHORT bytes of it
 * SHIM_LOG      file for the log: a header of 96 bytes, then `bytes` bytes, for each call
 * SHIM_RING     the ring file; SHIM_CONSUMED: offset of its consumed words
 * SHIM_EARLY    a planted mistake: `fdatasync` says it is done before it is, and is left out
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC, TRUNCATE, RENAME, UNLINK, CREATE, SYNC_DIRECTORY };
enum { FDS = 256, SLOTS = 8 };

struct entry {
    uint32_t kind, file;
    uint64_t offset, bytes;
    uint64_t consumed[SLOTS];
    uint64_t reserved;
};
_Static_assert(sizeof(struct entry) == 96, "as the test reads it");

static uint32_t files[FDS]; /* number of the dump file that is open as this descriptor, from 1 */
static uint32_t created;
static int directory_fd = -1;
static int calls;

static const char *setting(const char *name, const char *otherwise) {
    const char *value = getenv(name);
    return value ? value : otherwise;
}

static long number(const char *name, long otherwise) {
    const char *value = getenv(name);
    return value ? atol(value) : otherwise;
}

static int is_dump(const char *path) {
    const char *dump = setting("SHIM_DUMP", "");
    return *dump && strncmp(path, dump, strlen(dump)) == 0;
}

static int is_directory_of_dump(const char *path) {
    const char *dump = setting("SHIM_DUMP", ""), *slash = strrchr(dump, '/');
    size_t length = slash ? (size_t)(slash - dump) : 0;
    return length && strlen(path) == length && strncmp(path, dump, length) == 0;
}

/* The error that this call must fail with; 0: none; -1: it must be short. */
static int fault(const char *call) {
    if (strcmp(setting("SHIM_CALL", ""), call) != 0)
        return 0;
    long when = number("SHIM_WHEN", 1), times = number("SHIM_TIMES", 1);
    calls++;
    if (calls < when || calls >= when + times)
        return 0;
    long error = number("SHIM_ERROR", 0);
    return error ? (int)error : -1;
}

static void note(enum kind kind, uint32_t file, uint64_t offset, const void *data, uint64_t bytes,
                 const struct entry *before) {
    const char *path = getenv("SHIM_LOG");
    if (!path)
        return;
    struct entry entry = *before;
    entry.kind = kind;
    entry.file = file;
    entry.offset = offset;
    entry.bytes = bytes;
    int log = syscall(SYS_open, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (syscall(SYS_write, log, &entry, sizeof entry) < 0 || syscall(SYS_write, log, data, bytes) < 0)
        _exit(99);
    syscall(SYS_close, log);
}

/* What is released now, before the call. */
static struct entry released(void) {
    struct entry entry = {0};
    const char *ring = getenv("SHIM_RING");
    if (ring) {
        int fd = syscall(SYS_open, ring, O_RDONLY | O_CLOEXEC);
        if (syscall(SYS_pread64, fd, entry.consumed, sizeof entry.consumed, number("SHIM_CONSUMED", 0)) < 0)
            _exit(98);
        syscall(SYS_close, fd);
    }
    return entry;
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    int dump = is_dump(path) && (flags & O_CREAT);
    struct entry before = released();
    if (dump) {
        int error = fault("open");
        if (error > 0) {
            errno = error;
            return -1;
        }
    }
    int fd = syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && fd < FDS && dump) {
        files[fd] = ++created;
        note(CREATE, created, 0, path, strlen(path), &before);
    }
    if (fd >= 0 && is_directory_of_dump(path))
        directory_fd = fd;
    return fd;
}

int close(int fd) {
    if (fd >= 0 && fd < FDS)
        files[fd] = 0;
    if (fd == directory_fd)
        directory_fd = -1;
    return syscall(SYS_close, fd);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    if (fd < 0 || fd >= FDS || !files[fd])
        return syscall(SYS_write, fd, data, bytes);
    struct entry before = released();
    int error = fault("write");
    if (error > 0) {
        errno = error;
        return -1;
    }
    if (error < 0) {
        size_t left = number("SHIM_SHORT", 1);
        bytes = bytes > left ? bytes - left : bytes;
    }
    uint64_t offset = lseek(fd, 0, SEEK_CUR);
    ssize_t written = syscall(SYS_write, fd, data, bytes);
    if (written > 0)
        note(WRITE, files[fd], offset, data, written, &before);
    return written;
}

static int sync_with(const char *call, long syscall_number, int fd) {
    int file = fd >= 0 && fd < FDS && files[fd], directory = fd == directory_fd;
    if (!file && !directory)
        return syscall(syscall_number, fd);
    struct entry before = released();
    int error = fault(call);
    if (error > 0) {
        errno = error;
        return -1;
    }
    if (getenv("SHIM_EARLY"))
        return 0;
    int done = syscall(syscall_number, fd);
    if (done == 0)
        note(directory ? SYNC_DIRECTORY : SYNC, file ? files[fd] : 0, 0, "", 0, &before);
    return done;
}

int fdatasync(int fd) { return sync_with("fdatasync", SYS_fdatasync, fd); }

int fsync(int fd) { return sync_with("fsync", SYS_fsync, fd); }

int ftruncate64(int fd, off64_t bytes) {
    if (fd < 0 || fd >= FDS || !files[fd])
        return syscall(SYS_ftruncate, fd, bytes);
    struct entry before = released();
    int error = fault("ftruncate");
    if (error > 0) {
        errno = error;
        return -1;
    }
    int done = syscall(SYS_ftruncate, fd, bytes);
    if (done == 0)
        note(TRUNCATE, files[fd], bytes, "", 0, &before);
    return done;
}

int rename(const char *from, const char *to) {
    if (!is_dump(from))
        return syscall(SYS_rename, from, to);
    struct entry before = released();
    int error = fault("rename");
    if (error > 0) {
        errno = error;
        return -1;
    }
    int done = syscall(SYS_rename, from, to);
    if (done == 0) {
        char names[8192] = {0};
        size_t first = strlen(from) + 1, all = first + strlen(to);
        if (all >= sizeof names)
            _exit(97);
        memcpy(names, from, first);
        memcpy(names + first, to, all - first);
        note(RENAME, 0, 0, names, all, &before);
    }
    return done;
}

int unlink(const char *path) {
    if (!is_dump(path))
        return syscall(SYS_unlink, path);
    struct entry before = released();
    int error = fault("unlink");
    if (error > 0) {
        errno = error;
        return -1;
    }
    int done = syscall(SYS_unlink, path);
    if (done == 0)
        note(UNLINK, 0, 0, path, strlen(path), &before);
    return done;
}
