/* A program whose compiler left no patch sites. It counts the calls of its functions itself, and says so at its end:
   NAME COUNT. unprepared THREADS ROUNDS [calm], or with 0 rounds: until SIGTERM; calm: no handler interrupts a thread
   that works. Exit status 7: a result was wrong. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* One instruction of five bytes, and one of two with padding near: room for a jump in any compiler's program. */
__asm__(".text\n"
        ".balign 16\n.globl one_store\n.type one_store, @function\none_store:\n.cfi_startproc\n"
        "movl $1, %eax\naddl %edi, %eax\nret\n.cfi_endproc\n.size one_store, .-one_store\n"
        ".balign 16\n.globl hop\n.type hop, @function\nhop:\n.cfi_startproc\n"
        "movl %edi, %eax\naddl $2, %eax\nret\n.cfi_endproc\n.size hop, .-hop\n"
        ".balign 16\n.globl by_rip\n.type by_rip, @function\nby_rip:\n.cfi_startproc\n"
        "movl addend(%rip), %eax\naddl %edi, %eax\nret\n.cfi_endproc\n.size by_rip, .-by_rip\n"
        ".balign 16\n.globl pushes\n.type pushes, @function\npushes:\n.cfi_startproc\n"
        "pushq %r12\n.cfi_def_cfa_offset 16\n.cfi_offset %r12, -16\nmovl %edi, %r12d\n"
        "leal 4(%r12), %eax\npopq %r12\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size pushes, .-pushes\n"
        ".balign 16\n.globl jumps\n.type jumps, @function\njumps:\n.cfi_startproc\n"
        "jmp one_store\n.cfi_endproc\n.size jumps, .-jumps\n"
        /* A jump takes the place of several instructions: no thread may be between them. */
        ".balign 16\n.globl several\n.type several, @function\nseveral:\n.cfi_startproc\n"
        "pushq %rbx\n.cfi_def_cfa_offset 16\n.cfi_offset %rbx, -16\nmovl %edi, %ebx\n"
        "leal 7(%rbx), %eax\npopq %rbx\n.cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size several, .-several\n"
        ".balign 16\n.skip 7, 0xcc\n.globl decides\n.type decides, @function\ndecides:\n.cfi_startproc\n"
        "testl %edi, %edi\njs 1f\nleal 8(%rdi), %eax\nret\n1: movl $0, %eax\nret\n"
        ".cfi_endproc\n.size decides, .-decides\n"
        ".balign 16\n.globl too_short\n.type too_short, @function\ntoo_short:\n.cfi_startproc\n"
        "cld\nret\n.cfi_endproc\n.size too_short, .-too_short\n"
        ".globl behind\n.type behind, @function\nbehind:\n.cfi_startproc\n"
        "movl $5, %eax\nret\n.cfi_endproc\n.size behind, .-behind\n"
        ".balign 16\n.data\n.balign 4\naddend: .long 3\n.text\n");

int one_store(int), hop(int), by_rip(int), pushes(int), jumps(int), behind(int), several(int), decides(int);
void too_short(void);

__attribute__((noinline)) int in_handler(int n) {
    __asm__ volatile("" : "+r"(n));
    return n + 6;
}

__attribute__((noinline)) int nested(int n) { return one_store(n) + hop(n) + by_rip(n); }

enum { ONE_STORE, HOP, BY_RIP, PUSHES, JUMPS, IN_HANDLER, NESTED, SEVERAL, DECIDES, FUNCTIONS };
static const char *const NAMES[] = {"one_store", "hop", "by_rip", "pushes", "jumps", "in_handler", "nested",
                                    "several", "decides"};
static atomic_long counts[FUNCTIONS];
static atomic_int is_over, is_wrong;
static long rounds;

static void check(int is_right) {
    if (!is_right)
        atomic_store(&is_wrong, 1);
}

static void on_alarm(int signal) {
    (void)signal;
    check(in_handler(1) == 7);
    check(one_store(2) == 3);
    atomic_fetch_add(&counts[IN_HANDLER], 1);
    atomic_fetch_add(&counts[ONE_STORE], 1);
}

static void on_end(int signal) {
    (void)signal;
    atomic_store(&is_over, 1);
}

static void *work(void *argument) {
    long done = 0;
    for (; rounds ? done < rounds : !atomic_load(&is_over); done++) {
        int n = (int)(done & 0xffff);
        check(one_store(n) == n + 1);
        check(hop(n) == n + 2);
        check(by_rip(n) == n + 3);
        check(pushes(n) == n + 4);
        check(jumps(n) == n + 1);
        check(nested(n) == 3 * n + 6);
        check(several(n) == n + 7);
        check(decides(n) == n + 8);
        check(decides(-1 - n) == 0);
        too_short();
        check(behind(n) == 5);
        if (!rounds) /* not more calls than a recorder takes */
            usleep(50);
    }
    /* A jump is a call of where it leads. */
    const long calls[FUNCTIONS] = {3, 2, 2, 1, 1, 0, 1, 1, 2};
    for (int i = 0; i < FUNCTIONS; i++)
        atomic_fetch_add(&counts[i], calls[i] * done);
    return argument;
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? atoi(argv[1]) : 1;
    rounds = argc > 2 ? atol(argv[2]) : 1000;
    struct sigaction alarm = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &alarm, NULL);
    struct sigaction end = {.sa_handler = on_end};
    sigaction(SIGTERM, &end, NULL);
    struct itimerval every = {{0, 500}, {0, 500}};
    setitimer(ITIMER_REAL, &every, NULL);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGALRM);
    /* Threads inherit it. */
    if (argc > 3)
        pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    pthread_t ids[16];
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, work, NULL);
    pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    signal(SIGALRM, SIG_IGN);
    for (int i = 0; i < FUNCTIONS; i++)
        printf("%s %ld\n", NAMES[i], atomic_load(&counts[i]));
    return atomic_load(&is_wrong) ? 7 : 0;
}
