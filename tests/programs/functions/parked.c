/* After a line on standard input it stands still between two of a function's first instructions: in a handler on a stack of its
   own, over another handler, until another line comes. It calls the function a thousand times, and as often again after a third
   line, and prints the sum. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__asm__(".text\n.balign 64\n.globl parked\n.type parked, @function\nparked:\n.cfi_startproc\n"
        "pushq %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nmovl %edi, %ebx\n"
        "leal 1(%rbx), %eax\npopq %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size parked, .-parked\n");
__asm__(".text\n.balign 16\n.globl before\n.type before, @function\nbefore:\n.cfi_startproc\n"
        "movl $1, %eax\nret\n.cfi_endproc\n.size before, .-before\n");
int parked(int), before(void);
/* Behind two of its instructions; not a constant, which would lead there. */
enum { BETWEEN = 3 };
static int (*volatile start)(int) = parked;

static char stacks[2][1 << 16];
static volatile int was_parked;

static void read_line(void) {
    char line[16];
    if (read(0, line, sizeof line) < 0)
        _exit(8);
}

static void wait_for_line(int signal) {
    (void)signal;
    read_line();
}

static void poll_line(void) {
    poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, -1);
    read_line();
}

/* On another stack than the handler that it interrupts. */
static void on_step(int signal, siginfo_t *about, void *context) {
    (void)signal, (void)about;
    ucontext_t *at = context;
    if (was_parked || at->uc_mcontext.gregs[REG_RIP] != (greg_t)start + BETWEEN)
        return;
    was_parked = 1;
    at->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
    raise(SIGUSR1);
}

int main(void) {
    stack_t stack = {.ss_sp = stacks[0], .ss_size = sizeof stacks[0]};
    sigaltstack(&stack, NULL);
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGTRAP, &step, NULL);
    struct sigaction wait = {.sa_handler = wait_for_line};
    sigaction(SIGUSR1, &wait, NULL);
    poll_line();
    int sum = before();
    __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    sum += parked(1);
    __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
    for (int i = 0; i < 1000; i++)
        sum += parked(i);
    poll_line();
    for (int i = 0; i < 1000; i++)
        sum += parked(i);
    printf("%d\n", sum);
    return !was_parked;
}
