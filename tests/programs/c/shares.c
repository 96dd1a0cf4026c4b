/* Three functions that take about 70, 20 and 10 % of the time, in C or C++: `shares SECONDS FILE`. It begins with a line of
   its input, runs for that many seconds of its processor time, and then has in FILE how many ns each has run. It ends with its input. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))

static volatile unsigned long sum;

static unsigned long ran(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1000000000ul + time.tv_nsec;
}

#ifdef __cplusplus
namespace work {
template <unsigned long SEED> APART void part(unsigned long n) {
    for (unsigned long i = 0; i < n; i++) sum = sum * SEED + i;
}
void APART seventy(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum = sum * 31 + i; }
void APART twenty(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum = sum * 37 + i; }
const auto ten = part<41>;
}
using namespace work;
#else
APART static void seventy(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum = sum * 31 + i; }
APART static void twenty(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum = sum * 37 + i; }
APART static void ten(unsigned long n) { for (unsigned long i = 0; i < n; i++) sum = sum * 41 + i; }
#endif

/* Some ms in a row, of lengths that go with no clock. */
APART static void turn(unsigned long took[3]) {
    unsigned long unit = 100000 + rand() % 400000, times[4];
    times[0] = ran();
    seventy(7 * unit);
    times[1] = ran();
    twenty(2 * unit);
    times[2] = ran();
    ten(unit);
    times[3] = ran();
    for (int part = 0; part < 3; part++) took[part] += times[part + 1] - times[part];
}

int main(int count, char **arguments) {
    unsigned long took[3] = {0, 0, 0};
    char line[16], part[4096];
    if (count != 3 || !fgets(line, sizeof line, stdin)) return 2;
    unsigned long end = ran() + (unsigned long)(atof(arguments[1]) * 1e9);
    while (ran() < end) turn(took);
    snprintf(part, sizeof part, "%s.part", arguments[2]);
    FILE *truth = fopen(part, "w");
    if (!truth) return 3;
    fprintf(truth, "%lu %lu %lu\n", took[0], took[1], took[2]);
    fclose(truth);
    if (rename(part, arguments[2])) return 3;
    while (fgets(line, sizeof line, stdin)) {}
    return 0;
}
