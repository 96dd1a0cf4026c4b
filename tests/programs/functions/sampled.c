// Calls that a profiler looks at: outer calls plain, which has no patch site, and leaf; plain calls inner.
#include <stdlib.h>

#define CALLED __attribute__((noinline))

CALLED long leaf(long n) {
    volatile long sum = 0;
    for (long i = 0; i < n; i++) sum += i * i;
    return sum;
}

CALLED long inner(long n) { return leaf(n) + 1; }

CALLED __attribute__((patchable_function_entry(0))) long plain(long n) { return inner(n) + 1; }

CALLED long outer(long n) { return plain(n) + leaf(n); }

int main(int argc, char **argv) {
    long sum = 0;
    for (long i = argc > 1 ? atol(argv[1]) : 1; i > 0; i--) sum += outer(20000);
    return sum == 3;
}
