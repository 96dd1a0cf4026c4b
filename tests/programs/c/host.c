/* Loads plugin.so in a running session, unloads it, switches types, and loads it again. */
#include <dlfcn.h>
#include <stdio.h>

#define RINGMARK_TARGET "host"
#include <ringmark.h>

RINGMARK_EVENT(hosted, "host.called", (u64, n));

typedef void call(uint64_t n);

static int use(const char *path, uint64_t n) {
    void *plugin = dlopen(path, RTLD_NOW);
    if (plugin == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    call *function;
    *(void **)&function = dlsym(plugin, "plugin_call");
    if (function == NULL) {
        return 1;
    }
    function(n);
    return dlclose(plugin);
}

int main(int count, char **words) {
    if (count != 2) {
        return 2;
    }
    /* Before the session, and in it. */
    if (use(words[1], 1) != 0 || ringmark_start_from_env() != 0) {
        return 3;
    }
    ringmark_event(hosted, 5);
    if (use(words[1], 2) != 0 || use(words[1], 3) != 0) {
        return 4;
    }
    /* The session looks at all types when it ends. */
    ringmark_close();
    return 0;
}
