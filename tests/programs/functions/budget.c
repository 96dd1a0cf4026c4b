/* One function that is called all the time and some that hardly are. budget */
#include <stdint.h>

#define NOINLINE __attribute__((noinline, noclone))

static volatile uint64_t sink;

/* Long enough that a call of it now and then costs nothing beside it. */
NOINLINE uint64_t spin(uint64_t rounds) {
    uint64_t x = rounds;
    for (uint64_t i = 0; i < rounds; i++)
        x = x * 6364136223846793005u + sink;
    return x;
}
NOINLINE uint64_t hot(uint64_t x) { sink += x; return x * 3; }
NOINLINE uint64_t cold_one(uint64_t x) { return spin(20000) + x; }
NOINLINE uint64_t cold_two(uint64_t x) { return cold_one(x) + spin(20000); }

int main(void) {
    for (uint64_t round = 0;; round++) {
        for (uint64_t i = 0; i < 2000; i++)
            sink += hot(i);
        sink += cold_two(round);
    }
}
