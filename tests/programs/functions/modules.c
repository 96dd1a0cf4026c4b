/* Shared objects that come and go: modules PLUGIN.so STORM_PLUGIN.so */
#include "tracer.h"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct selection all;
static volatile int is_over;
static volatile long loads, forked;

UNTRACED static int call(void *plugin) {
    int (*outer)(int) = (int (*)(int))symbol_of(plugin, "plugin_outer");
    return outer(20);
}

UNTRACED static void *open_plugin(const char *path) {
    void *plugin = dlopen(path, RTLD_NOW);
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
    return plugin;
}

UNTRACED static void *load_and_unload(void *path) {
    while (!is_over) {
        void *plugin = open_plugin(path);
        if (call(plugin) != 42) {
            printf("wrong result\n");
            exit(3);
        }
        /* Long enough to be found, short enough to be gone when its sites are switched. */
        usleep(loads % 8 * 250);
        dlclose(plugin);
        usleep(loads++ % 3 * 200);
    }
    return NULL;
}

/* In a child no lock is held by a thread that is not there, and every site is whole. */
UNTRACED static int in_child(void *plugin) {
    static struct selection mine;
    alarm(20);
    scan(1);
    select_sites(&mine, "plugin_", 0);
    if (mine.count < 2 || switch_sites(mine.ids, mine.count, NULL) != mine.count)
        return 1;
    uint64_t before = sum_counts(&mine);
    return call(plugin) != 42 || sum_counts(&mine) != before;
}

UNTRACED static void *fork_and_wait(void *plugin) {
    while (!is_over) {
        pid_t child = fork();
        if (child == 0)
            _exit(in_child(plugin));
        int status = -1;
        waitpid(child, &status, 0);
        if (status != 0) {
            printf("child ended with %x\n", status);
            exit(3);
        }
        forked++;
    }
    return NULL;
}

/* A debugger's breakpoint in one of two open sites, while another module is loaded. */
UNTRACED static void tamper(void *plugin, const char *other) {
    unsigned char trap = 0xcc, old = *(unsigned char *)all.addresses[0];
    FILE *memory = fopen("/proc/self/mem", "r+");
    setbuf(memory, NULL);
    fseek(memory, (long)all.addresses[0], SEEK_SET);
    fwrite(&trap, 1, 1, memory);
    dlclose(open_plugin(other));
    scan(1);
    printf("tampered %zu\n", switch_sites(all.ids, all.count, NULL));
    switch_sites(all.ids, all.count, count_entry);
    fseek(memory, (long)all.addresses[0], SEEK_SET);
    fwrite(&old, 1, 1, memory);
    fclose(memory);
    uint64_t before = sum_counts(&all);
    int result = call(plugin);
    printf("tampered_result %d\ntampered_counted %llu\n", result, (unsigned long long)(sum_counts(&all) - before));
}

/* Switches every site of the plugins while another thread does `work`. */
UNTRACED static long switch_beside(void *(*work)(void *), void *argument, volatile long *progress, long enough) {
    pthread_t thread;
    long switched = 0;
    is_over = 0;
    pthread_create(&thread, NULL, work, argument);
    for (int i = 0; i < 200 || *progress < enough; i++) {
        scan(1);
        select_sites(&all, "plugin_", 0);
        switched += switch_sites(all.ids, all.count, i % 2 ? NULL : count_entry);
        usleep(i % 4 * 20);
    }
    is_over = 1;
    pthread_join(thread, NULL);
    return switched;
}

UNTRACED static void rescan_cost(void) {
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < 1000; i++)
        scan(1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("rescan_ns %ld\n", (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000);
}

int main(int argc, char **argv) {
    if (argc < 3)
        return 2;
    load_tracer();
    printf("without %zu\n", scan(1));
    void *plugin = open_plugin(argv[1]);
    printf("with %zu\n", scan(1));
    select_sites(&all, "plugin_", 0);
    printf("plugin_sites %zu\n", all.count);
    printf("switched %zu\n", switch_sites(all.ids, all.count, count_entry));
    int result = call(plugin);
    printf("result %d\ncounted %llu\n", result, (unsigned long long)sum_counts(&all));
    rescan_cost();

    dlclose(plugin);
    printf("gone %zu\n", switch_sites(all.ids, all.count, count_entry));
    plugin = open_plugin(argv[1]);
    scan(1);
    select_sites(&all, "plugin_", 0);
    switch_sites(all.ids, all.count, count_entry);
    /* Loaded again at the same place, unseen by the tracer: as its file made it. */
    dlclose(plugin);
    plugin = open_plugin(argv[1]);
    printf("stale %zu\n", switch_sites(all.ids, all.count, NULL));
    uint32_t old = all.ids[0];
    select_sites(&all, "plugin_", 0);
    printf("renumbered %d\n", all.count == 2 && all.ids[0] > old);
    printf("again %zu\n", switch_sites(all.ids, all.count, count_entry));
    uint64_t before = sum_counts(&all);
    result = call(plugin);
    printf("again_result %d\nagain_counted %llu\n", result, (unsigned long long)(sum_counts(&all) - before));

    tamper(plugin, argv[2]);
    printf("beside_loads %ld\n", switch_beside(load_and_unload, argv[2], &loads, 300));
    printf("beside_forks %ld\n", switch_beside(fork_and_wait, plugin, &forked, 100));
    printf("loads %ld\nforked %ld\n", loads, forked);
    return 0;
}
