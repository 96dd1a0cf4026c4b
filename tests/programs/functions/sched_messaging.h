/* What perf gives to its `sched messaging`, hackbench's descendant, so that it is a program:
 * options of one letter, and a main. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct option { int letter; void *value; };
#define OPT_BOOLEAN(letter, name, value, text) { letter, value }
#define OPT_UINTEGER(letter, name, value, text) { letter, value }
#define OPT_END() { 0, NULL }
#define USEC_PER_MSEC 1000L

enum { BENCH_FORMAT_DEFAULT, BENCH_FORMAT_SIMPLE };
static int bench_format = BENCH_FORMAT_DEFAULT;

int bench_sched_messaging(int argc, const char **argv);

/* -g GROUPS -l LOOPS */
static int parse_options(int argc, const char **argv, const struct option *options,
                         const char *const *usage, int flags) {
    (void)flags;
    for (int letter; (letter = getopt(argc, (char **)argv, "g:l:")) != -1;) {
        for (const struct option *o = options; o->letter; o++)
            if (o->letter == letter)
                *(unsigned *)o->value = (unsigned)atoi(optarg);
        if (letter == '?') {
            fprintf(stderr, "usage: %s\n", usage[0]);
            exit(2);
        }
    }
    return 0;
}

int main(int argc, const char **argv) { return bench_sched_messaging(argc, argv); }
