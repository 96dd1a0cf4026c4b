// What is loaded into the targets: uses what the function tracer uses, and dirties what it may.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __thread char large[2000];

static void *thread(void *argument) {
    free(malloc(3000));
    return argument;
}

int attach_library_start(const char *argument) {
    pthread_t id;
    char *copy = strdup(argument);
    memset(large, 1, sizeof large);
    // Every vector register, and the flags.
    for (int i = 0; i < 4; i++)
        __asm__ volatile("vpcmpeqd %%xmm0, %%xmm0, %%xmm0\n vpcmpeqd %%xmm1, %%xmm1, %%xmm1\n"
                         "vpcmpeqd %%xmm2, %%xmm2, %%xmm2\n vpcmpeqd %%xmm3, %%xmm3, %%xmm3\n"
                         "vpcmpeqd %%xmm4, %%xmm4, %%xmm4\n vpcmpeqd %%xmm5, %%xmm5, %%xmm5\n"
                         "vpcmpeqd %%xmm6, %%xmm6, %%xmm6\n vpcmpeqd %%xmm7, %%xmm7, %%xmm7\n"
                         "vpcmpeqd %%xmm8, %%xmm8, %%xmm8\n vpcmpeqd %%xmm15, %%xmm15, %%xmm15\n"
                         ::: "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",
                         "xmm15", "cc");
    errno = 99;
    int length = (int)strlen(copy);
    free(copy);
    if (pthread_create(&id, 0, thread, 0)) return -1;
    pthread_join(id, 0);
    return length;
}
