/* The C side of c_interface.rs: reads the name of a body, runs a window of it, prints ns a call. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RINGMARK_TARGET "bench"
#include <ringmark.h>

#define EVENTS 1000
#define REQUESTS 50
/* Events of each side in a request. */
#define EVENTS_OF_A_REQUEST 5

RINGMARK_EVENT(bench_event, "bench.event", (u64, value));

enum way { NONE, INLINE, CALL };

static void by_call(uint64_t value) {
    const uint32_t id = ringmark_is_on(bench_event);
    if (id != 0) {
        struct ringmark_reservation it;
        ringmark_reserve_call(&it, id, 1);
        if (it.header != NULL) {
            ringmark_set_word(&it, 0, value);
            ringmark_commit_call(&it);
        }
    }
}

static inline void emit(enum way way, uint64_t value) {
    if (way == INLINE) {
        ringmark_event(bench_event, value);
    } else if (way == CALL) {
        by_call(value);
    }
}

static uint64_t now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static void use(uint64_t *value) { __asm__ volatile("" : "+r"(*value)); }

static double window(enum way way) {
    const uint64_t start = now(CLOCK_MONOTONIC);
    if (way == NONE) {
        for (uint64_t i = 0; i < EVENTS; ++i) {
            uint64_t tick = __builtin_ia32_rdtsc();
            use(&tick);
        }
    } else if (way == INLINE) {
        for (uint64_t i = 0; i < EVENTS; ++i) {
            uint64_t value = i;
            use(&value);
            emit(INLINE, value);
        }
    } else {
        for (uint64_t i = 0; i < EVENTS; ++i) {
            uint64_t value = i;
            use(&value);
            emit(CALL, value);
        }
    }
    return (double)(now(CLOCK_MONOTONIC) - start) / EVENTS;
}

/* Emits until the thread's page has turned. */
static double open_page(void) {
    emit(INLINE, 0);
    struct ringmark_writer *const writer = ringmark_thread_block.writer;
    if (writer != NULL) {
        const uint64_t before = writer->tick_base;
        while (writer->tick_base == before) {
            emit(INLINE, 0);
        }
    }
    return 0;
}

/* ---- Requests and responses over the loopback interface, as tbench has them ---- */

static int client_end;
static int server_end;
static volatile enum way server_way;

static void work(enum way way, unsigned char *message) {
    for (uint64_t i = 0; i < EVENTS_OF_A_REQUEST; ++i) {
        message[i] ^= 1;
        emit(way, i);
    }
}

static void *serve(void *unused) {
    unsigned char message[64];
    (void)unused;
    while (read(server_end, message, sizeof message) == sizeof message) {
        work(server_way, message);
        if (write(server_end, message, sizeof message) != sizeof message) {
            break;
        }
    }
    return NULL;
}

static int connect_ends(void) {
    struct sockaddr_in address;
    socklen_t length = sizeof address;
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    client_end = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(client_end, (struct sockaddr *)&address, length) != 0) {
        return -1;
    }
    server_end = accept(listener, NULL, NULL);
    const int on = 1;
    setsockopt(client_end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server_end, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    pthread_t thread;
    return pthread_create(&thread, NULL, serve, NULL);
}

/* Processor time of both sides, ns a request. */
static double load(enum way way) {
    unsigned char message[64] = {0};
    server_way = way;
    const uint64_t start = now(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < REQUESTS; ++i) {
        work(way, message);
        if (write(client_end, message, sizeof message) != sizeof message ||
            read(client_end, message, sizeof message) != sizeof message) {
            exit(5);
        }
    }
    return (double)(now(CLOCK_PROCESS_CPUTIME_ID) - start) / REQUESTS;
}

int main(void) {
    char line[100];
    if (ringmark_start_from_env() != 0 || connect_ends() != 0) {
        return 3;
    }
    while (fgets(line, sizeof line, stdin) != NULL) {
        const enum way way = strstr(line, "inline") != NULL ? INLINE : strstr(line, "call") != NULL ? CALL : NONE;
        printf("%f\n", strstr(line, "load") != NULL   ? load(way)
                       : strstr(line, "page") != NULL ? open_page()
                                                      : window(way));
        fflush(stdout);
    }
    return 0;
}
