/* A program and a shared object, both with events: PLUGIN plain|deep [fork]. With -DPLUGIN it is the shared
 * object. "deep": what the shared object looks up, it finds in its own libraries first. "fork": a child
 * emits what a thread of its parent does. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ringmark.h>

#ifdef PLUGIN
RINGMARK_EVENT(here, "plugin.event", (u64, n));
RINGMARK_EVENT(another, "plugin.another", (u64, n));

int plugin_start(void);
int plugin_start(void) { return ringmark_start_from_env(); }

void plugin_emit(uint64_t n);
void plugin_emit(uint64_t n) {
    ringmark_event(here, n);
    ringmark_event(another, n);
}
#else
RINGMARK_EVENT(here, "host.event", (u64, n));

#define EVENTS 5000

typedef int starts(void);
typedef void emits(uint64_t n);
static emits *plugin_emit;

static void *both(void *unused) {
    (void)unused;
    for (uint64_t n = 0; n < EVENTS; n++) {
        ringmark_event(here, n);
        plugin_emit(n);
    }
    return NULL;
}

int main(int count, char **words) {
    if (count < 3 || ringmark_start_from_env() != 0) {
        return 3;
    }
    const int deep = strcmp(words[2], "deep") == 0 ? RTLD_DEEPBIND : 0;
    void *const plugin = dlopen(words[1], RTLD_NOW | deep);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 4;
    }
    starts *plugin_start;
    *(void **)&plugin_start = dlsym(plugin, "plugin_start");
    *(void **)&plugin_emit = dlsym(plugin, "plugin_emit");
    if (plugin_start == NULL || plugin_emit == NULL || plugin_start() != 0) {
        return 5;
    }
    pthread_t other;
    pthread_create(&other, NULL, both, NULL);
    if (count > 3) {
        /* While the other thread emits. */
        const pid_t child = fork();
        if (child == 0) {
            both(NULL);
            return 0;
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0) {
            return 6;
        }
    }
    both(NULL);
    pthread_join(other, NULL);
    return 0;
}
#endif
