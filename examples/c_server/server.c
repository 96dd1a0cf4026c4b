/* A server with a thread for its clients: each request has a span, the bytes sent are a counter. */
#include <arpa/inet.h>
#include <pthread.h>
#include <ringmark.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUESTS = 5 };

RINGMARK_SPAN(request, "request", (u64, number));
RINGMARK_EVENT(answered, "answered", (str, path), (u16, status));
RINGMARK_COUNTER(bytes_sent, "bytes.sent", u64);

static void expect(int is_well, const char *what) {
    if (!is_well) {
        perror(what);
        exit(1);
    }
}

/* Answers one request; returns the bytes that were sent. */
static uint64_t serve(int client, uint64_t number) {
    RINGMARK_SCOPE(request, number);
    char path[64] = {0};
    expect(read(client, path, sizeof path - 1) > 0, "read");
    const char *answer = strcmp(path, "/") == 0 ? "hello\n" : "not found\n";
    expect(write(client, answer, strlen(answer)) > 0, "write");
    ringmark_event(answered, path, strcmp(path, "/") == 0 ? 200 : 404);
    return strlen(answer);
}

static int tcp_socket(void) {
    int made = socket(AF_INET, SOCK_STREAM, 0);
    expect(made >= 0, "socket");
    return made;
}

static void *clients(void *address) {
    for (int i = 0; i < REQUESTS; ++i) {
        const char *path = i == 3 ? "/missing" : "/";
        char answer[64];
        int server = tcp_socket();
        expect(connect(server, address, sizeof(struct sockaddr_in)) == 0, "connect");
        expect(write(server, path, strlen(path)) > 0, "write");
        expect(read(server, answer, sizeof answer) > 0, "read");
        close(server);
    }
    return NULL;
}

int main(void) {
    ringmark_start_from_env();
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = tcp_socket();
    expect(bind(listener, (struct sockaddr *)&address, length) == 0, "bind");
    expect(listen(listener, 8) == 0, "listen");
    expect(getsockname(listener, (struct sockaddr *)&address, &length) == 0, "getsockname");
    pthread_t thread;
    expect(pthread_create(&thread, NULL, clients, &address) == 0, "pthread_create");
    uint64_t sent = 0;
    for (uint64_t number = 1; number <= REQUESTS; ++number) {
        int client = accept(listener, NULL, NULL);
        expect(client >= 0, "accept");
        sent += serve(client, number);
        ringmark_event(bytes_sent, sent);
        close(client);
    }
    pthread_join(thread, NULL);
    return 0;
}
