/* Threads, handlers, a fork, an end in the middle of a record: what the test counts.
 *
 *     load threads THREADS EVENTS   handlers of signals record inside, at any instruction
 *     load steps EVENTS             a handler records behind every instruction of an event
 *     load fork EVENTS
 *     load die EVENTS               SIGKILL inside a reservation
 *     load forever FILE             counts in FILE what is committed, until it is killed */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define RINGMARK_TARGET "load"
#include <ringmark.h>

RINGMARK_EVENT(work, "work", (u64, thread), (u64, seq), (u64, check));
RINGMARK_EVENT(handled, "handled", (u64, thread), (u64, seq), (u64, check));
RINGMARK_SPAN(held, "held", (u64, thread));

static _Thread_local uint64_t own_thread;
static _Thread_local uint64_t own_handled;
static uint64_t events;
static atomic_ulong all_handled;
static atomic_int running;

static void on_signal(int number) {
    (void)number;
    const uint64_t seq = own_handled++;
    ringmark_event(handled, own_thread, seq, ~seq);
}

static void emit(uint64_t seq) { ringmark_event(work, own_thread, seq, ~seq); }

/* A handler runs while this thread holds a reservation. */
static void interrupted(uint64_t seq) {
    const uint32_t id = ringmark_is_on(work);
    struct ringmark_reservation it = ringmark_reserve(id, 3);
    raise(SIGUSR1);
    if (it.header != NULL) {
        ringmark_set_word(&it, 0, own_thread);
        ringmark_set_word(&it, 1, seq);
        raise(SIGUSR1);
        ringmark_set_word(&it, 2, ~seq);
        ringmark_commit(&it);
    }
}

static void *worker(void *argument) {
    own_thread = (uint64_t)(uintptr_t)argument;
    for (uint64_t seq = 0; seq < events; ++seq) {
        if (seq % 16 == 3) {
            interrupted(seq);
        } else {
            emit(seq);
        }
    }
    RINGMARK_SCOPE(held, own_thread);
    /* From here on the main thread sends nothing more. */
    atomic_fetch_sub(&running, 1);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    atomic_fetch_add(&all_handled, own_handled);
    return NULL;
}

static int threads(int count) {
    pthread_t all[64];
    atomic_store(&running, count);
    for (int i = 0; i < count; ++i) {
        if (pthread_create(&all[i], NULL, worker, (void *)(uintptr_t)i) != 0) {
            return 4;
        }
    }
    /* Until the first of them ends: signals at any of their instructions. */
    while (atomic_load(&running) == count) {
        for (int i = 0; i < count; ++i) {
            pthread_kill(all[i], SIGUSR1);
        }
        usleep(50);
    }
    for (int i = 0; i < count; ++i) {
        pthread_join(all[i], NULL);
    }
    printf("handled %lu\n", atomic_load(&all_handled));
    return 0;
}

/* The processor's trap flag: SIGTRAP behind each instruction. */
static void step(uint64_t on) {
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n\t" /* The red zone. */
                     "pushfq\n\t"
                     "andq $~0x100, (%%rsp)\n\t"
                     "orq %0, (%%rsp)\n\t"
                     "popfq\n\t"
                     "leaq 128(%%rsp), %%rsp"
                     :
                     : "r"(on << 8)
                     : "cc", "memory");
}

static int steps(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGTRAP, &action, NULL);
    ringmark_attach_thread();
    for (uint64_t seq = 0; seq < events; ++seq) {
        step(1);
        emit(seq);
        step(0);
    }
    printf("handled %lu\n", (unsigned long)own_handled);
    return 0;
}

static int fork_once(void) {
    own_thread = 1;
    for (uint64_t seq = 0; seq < events; ++seq) {
        emit(seq);
    }
    fflush(stdout);
    const struct ringmark_span open = ringmark_begin(held);
    const pid_t child = fork();
    if (child < 0) {
        return 4;
    }
    own_thread = child == 0 ? 2 : 1;
    for (uint64_t seq = 0; seq < events; ++seq) {
        emit(child == 0 ? seq : events + seq);
    }
    int status = 0;
    if (child != 0 && (waitpid(child, &status, 0) != child || status != 0)) {
        return 5;
    }
    /* The child has ended its copy of the span; the parent's is open, and shown. */
    if (child != 0 && (open.frame == NULL || *open.frame != open.head)) {
        return 6;
    }
    ringmark_end(held, open, own_thread);
    return 0;
}

static int die(void) {
    for (uint64_t seq = 0; seq < events; ++seq) {
        emit(seq);
    }
    struct ringmark_reservation it = ringmark_reserve(ringmark_is_on(work), 3);
    ringmark_set_word(&it, 0, 7);
    raise(SIGKILL);
    return 4;
}

static int forever(const char *path) {
    const int file = open(path, O_RDWR);
    void *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || map == MAP_FAILED) {
        return 4;
    }
    _Atomic uint64_t *committed = (_Atomic uint64_t *)map;
    for (uint64_t seq = 0;; ++seq) {
        emit(seq);
        atomic_store_explicit(committed, seq + 1, memory_order_release);
    }
}

int main(int count, char **words) {
    if (count < 3 || ringmark_start_from_env() != 0) {
        return 3;
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    events = strtoull(words[count - 1], NULL, 10);
    if (strcmp(words[1], "threads") == 0) {
        return threads(atoi(words[2]));
    }
    if (strcmp(words[1], "steps") == 0) {
        return steps();
    }
    if (strcmp(words[1], "fork") == 0) {
        return fork_once();
    }
    return strcmp(words[1], "die") == 0 ? die() : forever(words[2]);
}
