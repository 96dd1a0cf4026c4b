// A process that is left in some way after 1,000 calls: left HOW [PLUGIN.so]. Its children make 100 calls each.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define QUIET __attribute__((patchable_function_entry(0), noinline))

__attribute__((noinline)) long leaf(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 1;
}

// A function of the same name is in left_other.c.
static __attribute__((noipa)) long helper(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 2;
}
long other(long rounds);

QUIET static void call(long rounds) {
    for (long n = 0; n < rounds; n++)
        leaf(n);
}

QUIET static void *thread(void *rounds) {
    call((long)rounds);
    return NULL;
}

// Starts threads that make 1,000 calls each.
QUIET static void threads(int count) {
    pthread_t all[64];
    for (int i = 0; i < count; i++)
        pthread_create(&all[i], NULL, thread, (void *)1000L);
    for (int i = 0; i < count; i++)
        pthread_join(all[i], NULL);
}

// A child that makes its calls and is left in this way.
QUIET static void child(int is_clean) {
    if (!fork()) {
        call(100);
        if (is_clean)
            exit(0);
        _exit(0);
    }
}

// As a pre-forking server whose workers load their plug-ins.
QUIET static void load(const char *path) {
    if (fork())
        return;
    void *plugin = dlopen(path, RTLD_NOW);
    int (*outer)(int) = plugin ? (int (*)(int))dlsym(plugin, "plugin_outer") : NULL;
    for (int n = 0; outer && n < 100; n++)
        outer(n);
    exit(outer == NULL);
}

// Bytes that the process has in memory, in KiB.
QUIET static long resident(void) {
    long pages = 0, all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &all, &pages) != 2)
        exit(9);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

QUIET int main(int count, char **words) {
    const char *how = count > 1 ? words[1] : "exit";
    if (!strcmp(how, "locked")) {
        if (mlockall(MCL_CURRENT | MCL_FUTURE))
            exit(77);
        threads(1);
        long before = resident();
        threads(16);
        printf("%ld\n", resident() - before);
        exit(0);
    }
    if (!strcmp(how, "load"))
        load(words[2]);
    else
        call(1000);
    if (!strcmp(how, "names")) {
        for (int n = 0; n < 100; n++)
            helper(n);
        other(200);
    }
    if (!strcmp(how, "descriptors")) {
        struct rlimit few = {64, 64};
        setrlimit(RLIMIT_NOFILE, &few);
        while (open("/dev/null", O_RDONLY) >= 0)
            ;
        threads(4);
    }
    if (!strcmp(how, "children"))
        for (int n = 0; n < 4; n++)
            child(n % 2);
    while (wait(NULL) > 0)
        ;
    if (!strcmp(how, "_exit"))
        _exit(0);
    if (!strcmp(how, "quick_exit"))
        quick_exit(0);
    if (!strcmp(how, "exec"))
        execl(words[0], words[0], "exit", (char *)NULL);
    exit(0);
}
