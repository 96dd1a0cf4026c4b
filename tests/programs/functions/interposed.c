/* Defines every function that the tracer's object imports: each has a site, counts its call and
 * jumps on to the function that it hides. `imports.h` is made by the test. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* An entry of `reals` is 24 bytes, the function's address first. */
#define HIDING(NAME, PLACE)                                                                        \
    __asm__(".pushsection .text\n"                                                                 \
            ".globl " #NAME "\n.type " #NAME ",@function\n.p2align 4\n" #NAME ":\n"                \
            "771: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                                            \
            "lock incq counts + 8 * " #PLACE "(%rip)\n"                                            \
            "cmpq $0, reals + 24 * " #PLACE "(%rip)\n"                                             \
            "je 772f\n"                                                                            \
            "jmp *reals + 24 * " #PLACE "(%rip)\n"                                                 \
            "772: pushq $" #PLACE "\n"                                                             \
            "jmp find_and_jump\n"                                                                  \
            ".size " #NAME ", . - " #NAME "\n"                                                     \
            ".popsection\n"                                                                        \
            ".pushsection __patchable_function_entries,\"aw\",@progbits\n"                         \
            ".balign 8\n.quad 771b\n"                                                              \
            ".popsection\n");

#include "imports.h"

#define UNTRACED __attribute__((patchable_function_entry(0)))

/* Through `dlvsym`, which the object does not import. */
UNTRACED __attribute__((used)) void *find(unsigned long place) {
    struct real *real = &reals[place];
    void *found = dlvsym(RTLD_NEXT, real->name, real->version);
    if (!found)
        __builtin_trap();
    return real->found = found;
}

/* Keeps all that a call may hand over, and rbx, which holds the stack pointer during the call. */
__asm__(".pushsection .text\n"
        ".type find_and_jump,@function\n"
        "find_and_jump:\n"
        "push %rax\npush %rdi\npush %rsi\npush %rdx\npush %rcx\npush %r8\npush %r9\npush %r10\n"
        "push %rbx\nmov 72(%rsp), %rdi\nmov %rsp, %rbx\n"
        "sub $128, %rsp\nand $-16, %rsp\n"
        "movaps %xmm0, (%rsp)\nmovaps %xmm1, 16(%rsp)\nmovaps %xmm2, 32(%rsp)\n"
        "movaps %xmm3, 48(%rsp)\nmovaps %xmm4, 64(%rsp)\nmovaps %xmm5, 80(%rsp)\n"
        "movaps %xmm6, 96(%rsp)\nmovaps %xmm7, 112(%rsp)\n"
        "call find\n"
        "movaps (%rsp), %xmm0\nmovaps 16(%rsp), %xmm1\nmovaps 32(%rsp), %xmm2\n"
        "movaps 48(%rsp), %xmm3\nmovaps 64(%rsp), %xmm4\nmovaps 80(%rsp), %xmm5\n"
        "movaps 96(%rsp), %xmm6\nmovaps 112(%rsp), %xmm7\n"
        "mov %rax, %r11\nmov %rbx, %rsp\n"
        "pop %rbx\npop %r10\npop %r9\npop %r8\npop %rcx\npop %rdx\npop %rsi\npop %rdi\npop %rax\n"
        "add $8, %rsp\n"
        "jmp *%r11\n"
        ".popsection\n");

static unsigned long before[COUNT], after[COUNT];

UNTRACED static void copy_counts(unsigned long *to) {
    for (int i = 0; i < COUNT; i++)
        ((volatile unsigned long *)to)[i] = __atomic_load_n(&counts[i], __ATOMIC_RELAXED);
}

static void handler(int signal) {
    char text[64];
    memset(text, signal, sizeof text);
    (void)getpid();
}

static void *thread(void *argument) {
    struct timespec time;
    /* More than the part of a ring that a thread finds prepared. */
    for (int i = 0; i < 1000; i++) {
        char *text = malloc(100);
        memset(text, i, 100);
        clock_gettime(CLOCK_MONOTONIC, &time);
        if (getpid() != *(pid_t *)argument || syscall(39) != getpid())
            _exit(3);
        free(text);
    }
    return 0;
}

int main(int argc, char **argv) {
    (void)argv;
    copy_counts(before);
    pid_t own = getpid();
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    sigaction(SIGUSR1, &action, 0);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], 0, thread, &own);
    for (int i = 0; i < 10; i++)
        kill(own, SIGUSR1);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], 0);
    /* If wished: a child whose first events come in a handler, and one whose do not. */
    for (int i = 0; i < 2 && argc > 1; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i == 0)
                raise(SIGUSR1);
            _exit(getpid() != own && strlen("four") == 4 ? 0 : 1);
        }
        int status;
        if (waitpid(child, &status, 0) != child || status != 0)
            return 4;
    }
    copy_counts(after);
    for (int i = 0; i < COUNT; i++)
        if (after[i] > before[i])
            printf("%s %lu %lu\n", reals[i].name, before[i], after[i]);
    return 0;
}
