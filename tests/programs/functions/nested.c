/* Calls of known number and nesting. nested ROUNDS [PAUSE_US] */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile unsigned sink;

NOINLINE unsigned leaf(unsigned x) { sink += x; return x * 2; }
NOINLINE unsigned middle(unsigned x) { unsigned y = leaf(x); y += leaf(x + 1); return y + 1; }
NOINLINE unsigned other(unsigned x) { sink ^= x; return x + 3; }
NOINLINE unsigned outer(unsigned x) { unsigned y = middle(x); y += other(x); return y + 1; }

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 1;
    long pause = argc > 2 ? atol(argv[2]) : 0;
    unsigned sum = 0;
    for (long i = 0; rounds < 0 || i < rounds; i++) {
        sum += outer((unsigned)i);
        if (pause)
            usleep(pause);
    }
    printf("%u\n", sum);
    return 0;
}
