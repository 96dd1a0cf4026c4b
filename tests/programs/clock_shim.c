/* Loaded in front of the C library: the wall clock is ahead by as many seconds as a file says.
 *
 * SHIM_CLOCK    the file: a number in digits, may be empty
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    const char *path = getenv("SHIM_CLOCK");
    if (result || clock != CLOCK_REALTIME || !path)
        return result;
    char text[24] = {0};
    int file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    if (file >= 0) {
        if (syscall(SYS_read, file, text, sizeof text - 1) > 0)
            now->tv_sec += strtoll(text, NULL, 10);
        syscall(SYS_close, file);
    }
    return result;
}
