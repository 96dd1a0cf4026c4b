/* Spans in calls, and calls in spans: ROUNDS. Prints, as `placed` does, how many there were of each name in each other
 * name, as a line of JSON. */
#include <stdio.h>
#include <stdlib.h>

#define RINGMARK_TARGET "placed_calls"
#include <ringmark.h>

RINGMARK_SPAN(job, "placed.job", (u64, n));
RINGMARK_SPAN(tax, "placed.tax");

static unsigned long prices, deeper;

#pragma GCC diagnostic ignored "-Winfinite-recursion"
__attribute__((noipa)) static void deep(uint64_t rest) {
    if (rest > 0) {
        deeper++;
        deep(rest - 1);
        __asm__ volatile("" : : : "memory");
    }
}

__attribute__((noipa)) static void price(uint64_t n) {
    prices++;
    RINGMARK_SCOPE(tax);
    deep(n % 4);
}

__attribute__((noipa)) static void serve(uint64_t n) {
    RINGMARK_SCOPE(job, n);
    price(n);
    price(n + 1);
}

int main(int count, char **arguments) {
    unsigned long rounds = count > 1 ? strtoul(arguments[1], NULL, 10) : 1;
    ringmark_start_from_env();
    for (unsigned long n = 0; n < rounds; n++) {
        serve(n);
    }
    printf("{\"main\":{\"\":1},\"serve\":{\"main\":%lu},\"placed.job\":{\"serve\":%lu},", rounds, rounds);
    printf("\"price\":{\"placed.job\":%lu},\"placed.tax\":{\"price\":%lu},", prices, prices);
    printf("\"deep\":{\"placed.tax\":%lu,\"deep\":%lu}}\n", prices, deeper);
    return 0;
}
