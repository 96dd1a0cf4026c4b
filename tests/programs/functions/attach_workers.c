// A server with a pool of threads behind a unix socket: `attach_workers SOCKET THREADS`. A request is
// its number, a length and that many bytes; the answer is the number and a checksum of the bytes.
// Every request is one call of serve_request(number), number % 3 calls of mix_round, and one of
// serve_finish(number). Ends with its input, and prints "ok N" with the number of its answers.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define TRACED __attribute__((noinline, noclone))
#define LONGEST 4096

static int door;
static atomic_ulong answers;

TRACED unsigned mix_round(unsigned number, const unsigned char *bytes, unsigned length) {
    unsigned sum = number;
    for (unsigned i = 0; i < length; i++) sum = (sum ^ bytes[i]) * 16777619u;
    return sum;
}

TRACED unsigned serve_finish(unsigned number, unsigned sum) {
    char text[32], *end;
    snprintf(text, sizeof text, "%u", sum);
    unsigned again = (unsigned)strtoul(text, &end, 10);
    return again ^ number;
}

TRACED unsigned serve_request(unsigned number, const unsigned char *bytes, unsigned length) {
    unsigned char *copy = malloc(length + 1);
    memcpy(copy, bytes, length);
    unsigned sum = 1;
    for (unsigned i = 0; i < number % 3; i++) sum += mix_round(number + i, copy, length);
    free(copy);
    return serve_finish(number, sum);
}

static int take(int from, void *to, size_t bytes) {
    return recv(from, to, bytes, MSG_WAITALL) == (ssize_t)bytes;
}

static void serve_connection(int peer) {
    unsigned head[2], answer[2];
    unsigned char bytes[LONGEST];
    while (take(peer, head, sizeof head) && head[1] <= LONGEST && take(peer, bytes, head[1])) {
        answer[0] = head[0];
        answer[1] = serve_request(head[0], bytes, head[1]);
        if (send(peer, answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) break;
        atomic_fetch_add(&answers, 1);
    }
    close(peer);
}

static void *work(void *unused) {
    (void)unused;
    for (;;) {
        int peer = accept(door, 0, 0);
        if (peer < 0) {
            perror("accept");
            _exit(1);
        }
        serve_connection(peer);
    }
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    strncpy(where.sun_path, arguments[1], sizeof where.sun_path - 1);
    door = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(door, (struct sockaddr *)&where, sizeof where) || listen(door, 64)) return 2;
    for (int i = 0; i < atoi(arguments[2]); i++) {
        pthread_t thread;
        if (pthread_create(&thread, 0, work, 0)) return 2;
    }
    char byte;
    while (read(0, &byte, 1) > 0) {}
    printf("ok %lu\n", atomic_load(&answers));
    return 0;
}
