// What unwinding costs, in ns of the CPU time of its thread: the least of many times. Arguments: depths, then `threads` and numbers
// of other threads.
// Each line: what, the depth or the number of other threads, ns.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <execinfo.h>
#include <pthread.h>
#include <semaphore.h>

#define TRACED extern "C" __attribute__((noinline))
#define QUIET static __attribute__((noinline, patchable_function_entry(0)))
#define KEEP asm volatile("" ::: "memory")

static long begun;

QUIET long now() {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}
TRACED void leaf() { KEEP; }
TRACED long deep(long depth) {
    KEEP;
    if (depth <= 1) {
        begun = now();
        throw 1;
    }
    long sum = 1 + deep(depth - 1);
    KEEP;
    return sum;
}
TRACED long look(long depth) {
    KEEP;
    if (depth <= 1) {
        void *found[64];
        long best = 1L << 60;
        for (int i = 0; i < 20; i++) {
            long start = now();
            backtrace(found, 64);
            best = std::min(best, now() - start);
        }
        return best;
    }
    long best = look(depth - 1);
    KEEP;
    return best;
}
// A throw, and the next call, which ends those that were left.
QUIET long thrown(long depth) {
    long best = 1L << 60;
    for (int i = 0; i < 20; i++) {
        try {
            deep(depth);
        } catch (int) {
            leaf();
            best = std::min(best, now() - begun);
        }
    }
    return best;
}

static sem_t ready, done;
QUIET void *idle(void *) {
    leaf();
    sem_post(&ready);
    sem_wait(&done);
    return nullptr;
}
QUIET void *measure(void *arguments) {
    char **argument = (char **)arguments;
    for (; *argument && strcmp(*argument, "threads"); argument++) {
        long depth = atol(*argument);
        printf("throw %ld %ld\n", depth, thrown(depth));
        printf("backtrace %ld %ld\n", depth, look(depth));
    }
    int threads = 0;
    for (; *argument && *++argument;) {
        long number = atol(*argument);
        for (; threads < number; threads++) {
            pthread_attr_t attributes;
            pthread_attr_init(&attributes);
            pthread_attr_setstacksize(&attributes, 64 << 10);
            pthread_t thread;
            if (pthread_create(&thread, &attributes, idle, nullptr)) exit(1);
            sem_wait(&ready);
        }
        printf("threads %ld %ld\n", number, thrown(10));
    }
    fflush(stdout);
    _Exit(0);
}
int main(int, char **arguments) {
    sem_init(&ready, 0, 0);
    sem_init(&done, 0, 0);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 256 << 20);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, measure, arguments + 1)) return 1;
    pthread_join(thread, nullptr);
}
