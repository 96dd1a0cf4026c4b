// A target whose threads are nearly always inside the C library or the loader, each with results
// that it checks. `attach_loop SECONDS PLUGIN KIND...`, one thread for each KIND: malloc, printf,
// dlopen, sum, sort, sleep, poll, cond, epoll, float. Prints "ok ROUNDS..." and exits 0, or says what
// was wrong and exits 1.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

static atomic_int over;
static const char *plugin;

static void wrong(const char *what) {
    printf("wrong: %s (errno %d)\n", what, errno);
    fflush(stdout);
    _exit(1);
}

__attribute__((noinline)) static int in_malloc(unsigned round) {
    unsigned char *blocks[16];
    for (int i = 0; i < 16; i++) {
        size_t size = 1 + (round * 37 + i * 101) % 5000;
        blocks[i] = malloc(size);
        memset(blocks[i], (unsigned char)(round + i), size);
        blocks[i][size - 1] ^= 0;
    }
    for (int i = 0; i < 16; i++) {
        size_t size = 1 + (round * 37 + i * 101) % 5000;
        if (blocks[i][0] != (unsigned char)(round + i) ||
            blocks[i][size - 1] != (unsigned char)(round + i))
            return 0;
        free(blocks[i]);
    }
    return 1;
}

__attribute__((noinline)) static int in_printf(unsigned round) {
    static FILE *nowhere;
    if (!nowhere) nowhere = fopen("/dev/null", "w");
    char text[64];
    int length = snprintf(text, sizeof text, "%u %.3f %s", round, round / 8.0, "x");
    fprintf(nowhere, "%s %d\n", text, length);
    return strtoul(text, 0, 10) == round;
}

__attribute__((noinline)) static int in_dlopen(void) {
    void *handle = dlopen(plugin, RTLD_NOW);
    if (!handle) return 0;
    int (*twice)(int) = (int (*)(int))dlsym(handle, "plugin_twice");
    int right = twice && twice(21) == 42;
    return dlclose(handle) == 0 && right;
}

static int order(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    void *block = malloc(1 + (x & 63));
    free(block);
    return (x > y) - (x < y);
}

// Callbacks of the C library: the program's code, but not to be interrupted for long thoughts.
__attribute__((noinline)) static int in_sort(unsigned round) {
    int numbers[200];
    for (int i = 0; i < 200; i++) numbers[i] = (int)((round + i * 7919u) % 1009);
    qsort(numbers, 200, sizeof *numbers, order);
    for (int i = 1; i < 200; i++)
        if (numbers[i - 1] > numbers[i]) return 0;
    return 1;
}

__attribute__((noinline)) static int in_sum(void) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 20000; i++) {
        sum += i * i;
        __asm__ volatile("" : "+r"(sum));
    }
    return sum == 2666466670000ull;
}

// The flags, the red zone, errno and the vector registers must be as they were.
__attribute__((noinline)) static int in_float(void) {
    double sums[8] = {0};
    errno = 77;
    for (int i = 0; i < 3000; i++) {
        for (int k = 0; k < 8; k++) sums[k] += (i + k) * 0.5;
        __asm__ volatile("" : : "r"(sums) : "memory");
    }
    double all = 0;
    for (int k = 0; k < 8; k++) all += sums[k];
    return all == 18036000.0 && errno == 77;
}

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

// Waits must neither end early nor say that a signal came.
static int in_wait(const char *kind) {
    uint64_t start = now_us();
    int result = -1;
    if (!strcmp(kind, "sleep")) {
        struct timespec time = {0, 50000000};
        result = nanosleep(&time, 0);
    } else if (!strcmp(kind, "poll")) {
        result = poll(0, 0, 50);
    } else if (!strcmp(kind, "epoll")) {
        static int set = -1;
        struct epoll_event event;
        if (set < 0) set = epoll_create1(0);
        result = epoll_wait(set, &event, 1, 50);
    } else {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
        struct timespec end;
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_nsec += 50000000;
        if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
        pthread_mutex_lock(&lock);
        while ((result = pthread_cond_timedwait(&changed, &lock, &end)) == 0) {}
        pthread_mutex_unlock(&lock);
        result = result == ETIMEDOUT ? 0 : -1;
    }
    return result == 0 && now_us() - start >= 49000;
}

static int once(const char *kind, unsigned round) {
    switch (kind[0]) {
    case 'm': return in_malloc(round);
    case 'd': return in_dlopen();
    case 'f': return in_float();
    }
    if (!strcmp(kind, "printf")) return in_printf(round);
    if (!strcmp(kind, "sum")) return in_sum();
    if (!strcmp(kind, "sort")) return in_sort(round);
    return in_wait(kind);
}

static void *work(void *argument) {
    const char *kind = argument;
    uintptr_t round = 0;
    while (!atomic_load(&over)) {
        if (!once(kind, (unsigned)round)) wrong(kind);
        round++;
    }
    return (void *)round;
}

int main(int count, char **arguments) {
    if (count < 4 || count > 40) return 2;
    plugin = arguments[2];
    pthread_t threads[40];
    for (int i = 3; i < count; i++) pthread_create(&threads[i], 0, work, arguments[i]);
    printf("ready\n");
    fflush(stdout);
    // Inside a stream, whose lock it holds: this thread is no way in, the others are.
    alarm((unsigned)atoi(arguments[1]));
    while (getchar() != EOF) {}
    if (ferror(stdin)) wrong("the first thread's stream");
    atomic_store(&over, 1);
    printf("ok");
    for (int i = 3; i < count; i++) {
        void *rounds;
        pthread_join(threads[i], &rounds);
        printf(" %s=%lu", arguments[i], (unsigned long)rounds);
    }
    printf("\n");
    return 0;
}
