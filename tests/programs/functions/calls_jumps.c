// Calls that are left by a jump, and calls in signal handlers.
#include "calls.h"
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static jmp_buf back;
static sigjmp_buf signal_back;
static void *builtin_back[5];
static volatile long sum;

#pragma GCC diagnostic ignored "-Winfinite-recursion"
static TRACED void fall(int n) {
    COUNT();
    if (n == 0) longjmp(back, 1);
    fall(n - 1);
    sum++;
}
static TRACED int catch_jump(int depth) {
    COUNT();
    if (setjmp(back) == 0) fall(depth);
    return depth;
}
static TRACED void builtin_fall(int n) {
    COUNT();
    if (n == 0) __builtin_longjmp(builtin_back, 1);
    builtin_fall(n - 1);
    sum++;
}
static TRACED int catch_builtin(int depth) {
    COUNT();
    if (__builtin_setjmp(builtin_back) == 0) {
        builtin_fall(depth);
        __asm__ volatile(""); // clang would give up the frame that is jumped to.
    }
    return 3;
}
static TRACED int leaf(int n) {
    COUNT();
    sum += n;
    return n + 1;
}
static TRACED int deeper(int n) {
    COUNT();
    int below = n == 0 ? 0 : INNER(deeper(n - 1));
    return leaf(n) + below;
}

static volatile int nested;
static TRACED void on_signal(int number) {
    COUNT();
    int room = number;
    HIDE(room);
    if (number == SIGUSR1 && ++nested < 4) raise(SIGUSR2);
    if (number == SIGUSR2 && ++nested < 4) raise(SIGUSR1);
    deeper(room % 5);
}
static TRACED void on_jump(int number) {
    COUNT();
    deeper(number % 3);
    siglongjmp(signal_back, 1);
}
static TRACED void on_timer(int number) {
    COUNT();
    deeper(number % 4);
}
static TRACED int catch_signal_jump(int n) {
    COUNT();
    if (n > 0) return INNER(catch_signal_jump(n - 1)) + 1;
    if (sigsetjmp(signal_back, 1) == 0) raise(SIGTERM);
    return deeper(2);
}
static TRACED int raise_deep(int n, int number) {
    COUNT();
    if (n > 0) return INNER(raise_deep(n - 1, number)) + 1;
    nested = 0;
    return raise(number);
}

// A stack for handlers that is hardly larger than the kernel needs, between pages that are not there.
static QUIET void small_stack(void) {
    long needed = sysconf(_SC_MINSIGSTKSZ) + 2048, pages = (needed + 4095) / 4096 * 4096;
    char *memory = mmap(NULL, (size_t)pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory + 4096, (size_t)pages, PROT_READ | PROT_WRITE);
    stack_t stack = {.ss_sp = memory + 4096 + (pages - needed), .ss_size = (size_t)needed};
    expect(sigaltstack(&stack, NULL) == 0, "sigaltstack");
}
static QUIET void handle(int number, void (*handler)(int), int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = flags;
    expect(sigaction(number, &action, NULL) == 0, "sigaction");
}

// Calls in the place of a return: all of a chain return at once.
static TRACED int chain(int n);
static TRACED int chain_link(int n) {
    COUNT();
    return n == 0 ? 1 : chain(n - 1);
}
static TRACED int chain(int n) {
    COUNT();
    return n == 0 ? 1 : chain_link(n - 1);
}

// At any instruction of what records, again and again.
static QUIET int often(int flags) {
    deeper(1); // The thread has all it needs for recording before the first one comes.
    handle(SIGALRM, on_timer, SA_RESTART | flags);
    struct itimerval often = {{0, 37}, {0, 37}}, never = {{0, 0}, {0, 0}};
    expect(setitimer(ITIMER_REAL, &often, NULL) == 0, "setitimer");
    long right = 0;
    for (int i = 0; i < 20000; i++) right += deeper(i % 9) >= 1 && chain(i % 7);
    setitimer(ITIMER_REAL, &never, NULL);
    printf("timed %ld\n", right);
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "often") == 0) return often(0);
    if (count > 1 && strcmp(arguments[1], "elsewhere") == 0) {
        small_stack();
        return often(SA_ONSTACK);
    }
    for (int i = 0; i < 300; i++) {
        catch_jump(i % 40);
        catch_builtin(i % 17);
        leaf(i);
    }
    printf("jumped %ld\n", sum);
    handle(SIGUSR1, on_signal, 0);
    handle(SIGUSR2, on_signal, 0);
    handle(SIGTERM, on_jump, 0);
    for (int i = 0; i < 50; i++) {
        raise_deep(i % 7, i % 2 ? SIGUSR1 : SIGUSR2);
        catch_signal_jump(i % 5);
    }
    printf("signals %ld\n", sum);
    small_stack();
    handle(SIGHUP, on_timer, SA_ONSTACK);
    handle(SIGTERM, on_jump, SA_ONSTACK);
    for (int i = 0; i < 50; i++) {
        raise_deep(i % 7, SIGHUP);
        catch_signal_jump(i % 5);
    }
    printf("alternate %ld\n", sum);
    return 0;
}
