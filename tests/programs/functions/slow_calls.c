/* A server's loop: slow_calls FATES calls serve(n) for each letter; one with the letter s is slow. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned long sink;

NOINLINE void look_up(unsigned long number) { sink ^= number; }

NOINLINE void serve(unsigned long number, char fate) {
    look_up(number);
    if (fate == 's')
        usleep(3000 * 1000);
    sink += number;
}

int main(int argc, char **argv) {
    const char *fates = argc > 1 ? argv[1] : "";
    for (unsigned long n = 0; n < strlen(fates); n++)
        serve(n, fates[n]);
    printf("%lu\n", sink);
    return 0;
}
