/* Loads a module, calls it for a while, unloads it, twice over. late MODULE CALLS PAUSE_US */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    for (int round = 0; round < 2; round++) {
        void *module = dlopen(argv[1], RTLD_NOW);
        int (*work)(int) = module ? (int (*)(int))dlsym(module, "plug_work") : NULL;
        if (!work) {
            fprintf(stderr, "%s\n", dlerror());
            return 3;
        }
        long calls = atol(argv[2]);
        for (long i = 0; i < calls; i++) {
            if (work((int)i) != (int)i * 3 + 1)
                return 4;
            usleep(atol(argv[3]));
        }
        dlclose(module);
    }
    return 0;
}
