// A small server with a thread for each connection, and the load on it. `attach_server SECONDS
// CLIENTS`: clients connect, ask some times, go, and come again. Ends with its input or after
// some time; prints "ok requests=N failed=M slowest_us=T".
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

// The load ends; then, when no client waits for an answer, the door closes.
static atomic_int over, closed;
static atomic_ulong requests, failed, slowest;
static struct sockaddr_in where = {.sin_family = AF_INET};

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000ull + now.tv_nsec / 1000;
}

__attribute__((noinline)) static unsigned checksum(const char *text, int length) {
    unsigned sum = 1;
    for (int i = 0; i < length; i++) sum = sum * 31 + (unsigned char)text[i];
    return sum;
}

__attribute__((noinline)) static int answer(char *out, size_t room, const char *text, int length) {
    char *copy = malloc(length + 1);
    memcpy(copy, text, length);
    copy[length] = 0;
    int written = snprintf(out, room, "%u %s", checksum(copy, length), copy);
    free(copy);
    return written;
}

__attribute__((noinline)) static void *serve(void *argument) {
    int socket = (int)(intptr_t)argument;
    char text[256], out[512];
    for (;;) {
        ssize_t length = recv(socket, text, sizeof text - 1, 0);
        if (length < 0) atomic_fetch_add(&failed, 1);
        if (length <= 0) break;
        int written = answer(out, sizeof out, text, (int)length);
        if (send(socket, out, written, MSG_NOSIGNAL) != written) atomic_fetch_add(&failed, 1);
    }
    close(socket);
    return 0;
}

// Waits for connections in epoll_wait; EINTR there is a failure: no signal is sent.
static void *listener(void *argument) {
    int door = (int)(intptr_t)argument, set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, door, &event);
    while (!atomic_load(&closed)) {
        int ready = epoll_wait(set, &event, 1, 100);
        if (ready < 0) atomic_fetch_add(&failed, 1);
        if (ready <= 0) continue;
        int socket = accept(door, 0, 0);
        pthread_t thread;
        if (socket < 0 || pthread_create(&thread, 0, serve, (void *)(intptr_t)socket)) {
            atomic_fetch_add(&failed, 1);
            continue;
        }
        pthread_detach(thread);
    }
    return 0;
}

static int ask(int connection, unsigned number) {
    char text[64], expected[256], found[256];
    int length = snprintf(text, sizeof text, "request %u", number);
    int wanted = snprintf(expected, sizeof expected, "%u %s", checksum(text, length), text);
    if (send(connection, text, length, MSG_NOSIGNAL) != length) return 0;
    int got = 0;
    while (got < wanted) {
        ssize_t piece = recv(connection, found + got, sizeof found - got, 0);
        if (piece <= 0) return 0;
        got += (int)piece;
    }
    return got == wanted && !memcmp(found, expected, got);
}

static void *client(void *argument) {
    unsigned number = (unsigned)(intptr_t)argument << 20;
    while (!atomic_load(&over)) {
        int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(connection, (struct sockaddr *)&where, sizeof where)) {
            atomic_fetch_add(&failed, 1);
            close(connection);
            continue;
        }
        for (int i = 0; i < 50 && !atomic_load(&over); i++) {
            uint64_t start = now_us();
            if (!ask(connection, number++)) atomic_fetch_add(&failed, 1);
            uint64_t took = now_us() - start, before = atomic_load(&slowest);
            while (took > before && !atomic_compare_exchange_weak(&slowest, &before, took)) {}
            atomic_fetch_add(&requests, 1);
        }
        close(connection);
    }
    return 0;
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    int clients = atoi(arguments[2]);
    pthread_t threads[33];
    if (clients < 1 || clients > 32) return 2;
    int door = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t length = sizeof where;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(door, (struct sockaddr *)&where, sizeof where) || listen(door, 64) ||
        getsockname(door, (struct sockaddr *)&where, &length))
        return 2;
    pthread_create(&threads[32], 0, listener, (void *)(intptr_t)door);
    for (int i = 0; i < clients; i++)
        pthread_create(&threads[i], 0, client, (void *)(intptr_t)(i + 1));
    printf("ready\n");
    fflush(stdout);
    struct pollfd input = {0, POLLIN, 0};
    if (poll(&input, 1, atoi(arguments[1]) * 1000) < 0) atomic_fetch_add(&failed, 1);
    atomic_store(&over, 1);
    for (int i = 0; i < clients; i++) pthread_join(threads[i], 0);
    atomic_store(&closed, 1);
    pthread_join(threads[32], 0);
    printf("ok requests=%lu failed=%lu slowest_us=%lu\n", atomic_load(&requests),
           atomic_load(&failed), atomic_load(&slowest));
    return atomic_load(&failed) != 0;
}
