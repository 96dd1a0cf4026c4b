/* Six threads call functions and check every result while their sites are switched.
 *
 * toggle SECONDS BATCHES [inside] [before] [locked] [exits] [all] [retarget]: until both are reached. `inside` also enters
 * functions behind each byte of their NOPs, as a thread would that had rested there. `before` says
 * that sites are switched before threads run. `locked` forbids memory that is writable and
 * executable, or becomes executable after it was writable. `exits` switches exits, `all` every
 * site, for programs without symbols. `retarget` leaves them open and changes what they call. */
#include "tracer.h"
#include "many.h"
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define THREADS 6

static volatile int is_over, goes_inside;
static uint64_t calls[THREADS + 1][16];
static int inside_from[FUNCTIONS];

UNTRACED static void check(size_t i, size_t skip, uint32_t x, uint64_t *count) {
    function *f = (function *)((uintptr_t)functions[i] + skip);
    uint32_t expected = EXPECTED(i, x);
    uint32_t found = f(x, 1, 2, 3, x, 5);
    if (found != expected) {
        printf("wrong %zu(%u): %u, expected %u\n", i, x, found, expected);
        fflush(stdout);
        _exit(3);
    }
    ++*count;
}

UNTRACED static void *work(void *argument) {
    size_t self = (size_t)argument;
    if (self % 2) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
    }
    for (uint32_t x = self; !is_over; x += 7)
        for (size_t i = 0; i < FUNCTIONS && !is_over; i++) {
            check(i, 0, x, &calls[self][0]);
            for (size_t k = 1; goes_inside && inside_from[i] >= 0 && k < 5; k++)
                check(i, inside_from[i] + k, x, &calls[self][1]);
        }
    return NULL;
}

UNTRACED static double now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

/* Where in each function five NOPs of one byte lie. */
UNTRACED static void find_nops(void) {
    for (size_t i = 0; i < FUNCTIONS; i++) {
        const unsigned char *code = (const unsigned char *)functions[i];
        int at = memcmp(code, "\xf3\x0f\x1e\xfa", 4) ? 0 : 4;
        inside_from[i] = memcmp(code + at, "\x90\x90\x90\x90\x90", 5) ? -1 : at;
    }
}

UNTRACED static size_t switch_some(const struct selection *all, uint32_t seed, const void *target) {
    static uint32_t some[COUNTS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < all->count; i++)
        if (all->count > 1000 || ((seed + i) * 2654435761u >> 28) % 4)
            some[count++] = all->ids[i];
    size_t done = switch_sites(some, count, target);
    if (done != count) {
        printf("switched %zu of %zu\n", done, count);
        fflush(stdout);
        _exit(4);
    }
    return count;
}

/* With all sites open, or none, calls and counts agree exactly. */
UNTRACED static void account(const struct selection *all, const void *target, const char *name) {
    switch_sites(all->ids, all->count, target);
    uint64_t before = sum_counts(all), made = 0;
    for (uint32_t x = 0; x < 100; x++)
        for (size_t i = 0; i < FUNCTIONS; i++)
            check(i, 0, x, &made);
    printf("%s %llu of %llu\n", name, (unsigned long long)(sum_counts(all) - before), (unsigned long long)made);
}

UNTRACED static void print_offsets(const struct selection *all) {
    uint32_t offsets = 0;
    for (size_t i = 0; i < all->count; i++)
        offsets |= 1u << all->addresses[i] % 8;
    printf("offsets %d\n", __builtin_popcount(offsets));
}

/* A line of /proc/self/maps that is writable and executable. */
UNTRACED static void print_protection(void) {
    char line[512];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        found += strstr(line, " rwx") != NULL;
    printf("writable_code %d\n", found);
    if (maps)
        fclose(maps);
}

int main(int argc, char **argv) {
    static struct selection all;
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    uint64_t batches = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int before = 0, exits = 0, has_names = 1, stays_open = 0;
    load_tracer();
    for (int i = 3; i < argc; i++) {
        goes_inside |= !strcmp(argv[i], "inside");
        before |= !strcmp(argv[i], "before");
        stays_open |= !strcmp(argv[i], "retarget");
        exits |= !strcmp(argv[i], "exits");
        has_names &= strcmp(argv[i], "all") != 0;
        if (!strcmp(argv[i], "locked") && prctl(65 /* PR_SET_MDWE */, 1, 0, 0, 0)) {
            printf("unlocked 1\n");
            return 0;
        }
    }
    find_nops();
    printf("sites %zu\n", scan(!before));
    select_sites(&all, has_names ? "f" : "", exits);
    print_offsets(&all);
    if (before) {
        switch_sites(all.ids, all.count, count_entry);
        switch_sites(all.ids, all.count, NULL);
        scan(1);
    }
    if (stays_open)
        switch_sites(all.ids, all.count, count_entry);
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    uint64_t done = 0, sites = 0;
    double first = 0, fastest = 1e9, cpu = 0, start = now(CLOCK_MONOTONIC);
    /* Until threads have met open sites too, which takes a while where processors are few. */
    while (now(CLOCK_MONOTONIC) - start < seconds || done < batches || !sum_counts(&all)) {
        double from = now(CLOCK_MONOTONIC), cpu_from = now(CLOCK_THREAD_CPUTIME_ID);
        sites += switch_some(&all, done / 2, done % 2 ? (stays_open ? count_again : NULL) : count_entry);
        double took = now(CLOCK_MONOTONIC) - from;
        cpu += now(CLOCK_THREAD_CPUTIME_ID) - cpu_from;
        first = done ? first : took;
        fastest = took < fastest ? took : fastest;
        done++;
    }
    is_over = 1;
    uint64_t made = 0, inside = 0;
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        made += calls[i][0];
        inside += calls[i][1];
    }
    printf("batches %llu\nsite_switches %llu\n", (unsigned long long)done, (unsigned long long)sites);
    printf("calls %llu\ninside %llu\n", (unsigned long long)made, (unsigned long long)inside);
    printf("missed %lld\n", (long long)made - (long long)sum_counts(&all));
    printf("counted_any %d\n", sum_counts(&all) > 0);
    printf("first_us %.1f\nfastest_us %.1f\ncpu_us %.1f\n", first * 1e6, fastest * 1e6, cpu / done * 1e6);
    account(&all, count_entry, "open");
    account(&all, NULL, "rest");
    print_protection();
    return 0;
}
