/* Requests on several threads, in spans and functions: served THREADS REQUESTS.
 *
 * Request N, from 0, is a span that calls handle(), which reports it and calls query() N % 3 times; each query has a
 * span of its own and calls leaf() once. Request SLOW takes 20 ms longer, in the last query. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define RINGMARK_TARGET "served"
#include <ringmark.h>

RINGMARK_SPAN(request, "request", (u64, id));
RINGMARK_SPAN(querying, "db.query", (u64, number));
RINGMARK_EVENT(accepted, "request.accepted", (u64, id));

#define SLOW 41

static uint64_t threads, requests;

__attribute__((noinline, noclone)) static void leaf(uint64_t id) {
    if (id == SLOW) {
        usleep(20000);
    }
    __asm__ volatile("");
}

__attribute__((noinline, noclone)) static void query(uint64_t id, uint64_t number) {
    RINGMARK_SCOPE(querying, number);
    leaf(id);
    __asm__ volatile("");
}

__attribute__((noinline, noclone)) static void handle(uint64_t id) {
    ringmark_event(accepted, id);
    for (uint64_t number = 0; number < id % 3; number++) {
        query(id, number);
    }
    __asm__ volatile("");
}

static void *serve(void *first) {
    for (uint64_t id = (uintptr_t)first; id < requests; id += threads) {
        RINGMARK_SCOPE(request, id);
        handle(id);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count != 3 || ringmark_start_from_env() != 0) {
        return 3;
    }
    threads = strtoull(words[1], NULL, 10);
    requests = strtoull(words[2], NULL, 10);
    pthread_t all[16];
    for (uintptr_t i = 0; i < threads && i < 16; i++) {
        pthread_create(&all[i], NULL, serve, (void *)i);
    }
    for (uint64_t i = 0; i < threads && i < 16; i++) {
        pthread_join(all[i], NULL);
    }
    return 0;
}
