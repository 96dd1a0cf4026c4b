// Calls whose ends are not seen: too deep, and one that is still open at the end. Those on other stacks
// have theirs.
// Prints how often each function was called.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#define NI __attribute__((noinline))
#define KEEP __asm__ volatile("" ::: "memory")
#define OWN __attribute__((patchable_function_entry(0)))

static long deep_calls, plain_calls, handled, inner_calls, body_calls;
static ucontext_t outside, inside;

NI long deep(long n) {
    deep_calls++;
    KEEP;
    if (n == 0)
        return 0;
    long r = 1 + deep(n - 1);
    KEEP;
    return r;
}

NI long plain(long n) {
    plain_calls++;
    KEEP;
    return n + 1;
}

NI void handler(int signal) {
    (void)signal;
    handled++;
    KEEP;
}

NI void inner(void) {
    inner_calls++;
    KEEP;
    swapcontext(&inside, &outside);
    KEEP;
}

NI void body(void) {
    body_calls++;
    for (int i = 0; i < 10; i++)
        inner();
    KEEP;
}

OWN static void *run_deep(void *unused) {
    deep(150000);
    return unused;
}

OWN static void on_other_stacks(void) {
    stack_t other = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
    sigaltstack(&other, 0);
    sigaction(SIGUSR1, &action, 0);
    for (int i = 0; i < 50; i++)
        raise(SIGUSR1);
    getcontext(&inside);
    inside.uc_stack.ss_sp = malloc(1 << 16);
    inside.uc_stack.ss_size = 1 << 16;
    inside.uc_link = &outside;
    makecontext(&inside, body, 0);
    for (int i = 0; i < 11; i++)
        swapcontext(&outside, &inside);
}

// Never returns.
NI void last(void) {
    printf("last 1\ndeep %ld\nplain %ld\nhandler %ld\ninner %ld\nbody %ld\n", deep_calls,
           plain_calls, handled, inner_calls, body_calls);
    exit(0);
}

OWN int main(void) {
    pthread_attr_t large;
    pthread_t thread;
    pthread_attr_init(&large);
    pthread_attr_setstacksize(&large, 64 << 20);
    pthread_create(&thread, &large, run_deep, 0);
    pthread_join(thread, 0);
    for (int i = 0; i < 100; i++)
        plain(i);
    on_other_stacks();
    last();
}
