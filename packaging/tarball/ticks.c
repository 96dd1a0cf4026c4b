/* A traced program for checks of packages: ticks COUNT [RUN] gives COUNT events, 50 in each 10 ms. */
#include <ringmark.h>
#include <stdlib.h>
#include <unistd.h>

RINGMARK_EVENT(tick, "tick", (u32, n), (u32, run));

int main(int count, char **words) {
    ringmark_start_from_env();
    unsigned n, last = count > 1 ? atoi(words[1]) : 100, run = count > 2 ? atoi(words[2]) : 0;
    for (n = 1; n <= last; n++) {
        ringmark_event(tick, n, run);
        if (n % 50 == 0) usleep(10000);
    }
}
