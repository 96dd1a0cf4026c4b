/* Two threads that wait for each other: `ping_pong ROUNDS`. For each line of its input they pass a byte to and fro ROUNDS times;
   then it says "done". It ends with its input. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int there[2], back[2];

static void *answer(void *unused) {
    char byte;
    while (read(there[0], &byte, 1) == 1)
        if (write(back[1], &byte, 1) != 1) break;
    return unused;
}

int main(int count, char **arguments) {
    char line[16], byte = 0;
    pthread_t thread;
    if (count != 2 || pipe(there) || pipe(back)) return 2;
    if (pthread_create(&thread, NULL, answer, NULL)) return 3;
    pthread_setname_np(thread, "answers");
    puts("ready");
    fflush(stdout);
    while (read(0, line, 1) == 1) {
        for (int round = atoi(arguments[1]); round > 0; round--)
            if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return 4;
        puts("done");
        fflush(stdout);
    }
    return 0;
}
