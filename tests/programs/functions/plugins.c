/* plugins ROUNDS MODULE SLOW: loads SLOW again and again in a second thread, until its input has a
   byte or ends; then loads MODULE, calls it and unloads it, ROUNDS times. After a byte it then stays.
   With a fourth word its loader's function for debuggers has other padding than a C library's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile int is_over;

static void *load(const char *path) {
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!module) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return module;
}

static void *load_slowly(void *path) {
    while (!is_over) {
        dlclose(load(path));
        usleep(1000);
    }
    return NULL;
}

static void change_padding(void) {
    unsigned char *after = (unsigned char *)_r_debug.r_brk + 1;
    unsigned long page = (unsigned long)after & -4096UL;
    if (mprotect((void *)page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC))
        exit(4);
    *after = 0xcc;
    mprotect((void *)page, 4096, PROT_READ | PROT_EXEC);
}

int main(int argc, char **argv) {
    if (argc < 4)
        return 2;
    if (argc > 4)
        change_padding();
    pthread_t thread;
    pthread_create(&thread, NULL, load_slowly, argv[3]);
    int byte = getchar();
    is_over = 1;
    pthread_join(thread, NULL);
    for (int round = 0; round < atoi(argv[1]); round++) {
        void *module = load(argv[2]);
        int (*work)(int) = (int (*)(int))dlsym(module, "plug_work");
        if (!work || work(round) != 3 * round + 1)
            return 5;
        dlclose(module);
    }
    return byte == EOF ? 0 : pause();
}
