// Single-steps itself through its calls. At each instruction an unwinder says who the callers are, as a profiler's handler
// asks it. Arguments: libgcc or libunwind, then what is done, which begins when standard input ends.
//
// Standard output: the callers at the instructions of the program, where they change. They are the same whether its
// functions are traced. At an instruction elsewhere, between the function that is left and the one that is entered, the
// callers must be those of either, at its first instructions. What differs is on standard error, and the exit code is 3.
#define _GNU_SOURCE
#include "calls.h"
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unwind.h>

// A site inside a function, as a macro of Rust makes it.
#ifdef INSIDE
#define SITE()                                                                                     \
    __asm__ volatile(".Lsite%=: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"                              \
                     ".pushsection ringmark_functions,\"ao\",@progbits,.Lsite%=\n"                 \
                     ".balign 8\n.quad .Lsite%= - .\n.popsection" ::: "cc")
#else
#define SITE() (void)0
#endif

extern char __executable_start[], etext[];
enum { FRAMES = 24, PENDING = 64, WRONG_MAX = 40 };

// Callers in the program, the innermost first, as distances from its start.
struct stack {
    int count;
    uint32_t callers[FRAMES];
};
// Callers at instructions elsewhere that have not been compared yet.
struct elsewhere {
    unsigned long at, times;
    struct stack stack;
};
static struct stack before;
static struct elsewhere pending[PENDING];
static int pendings;

static unsigned long steps, steps_elsewhere, wrong;
static volatile int is_unwinding;
static sigjmp_buf crashed;

static QUIET int is_ours(unsigned long at) {
    return at - (unsigned long)__executable_start < (unsigned long)(etext - __executable_start);
}
static QUIET void add(struct stack *stack, unsigned long at) {
    if (is_ours(at) && stack->count < FRAMES)
        stack->callers[stack->count++] = (uint32_t)(at - (unsigned long)__executable_start);
}
static QUIET int is_same(const struct stack *a, const struct stack *b) {
    return a->count == b->count && !memcmp(a->callers, b->callers, sizeof(uint32_t) * (size_t)a->count);
}

// libgcc's unwinder, not that of a library with the same names.
static __typeof__(_Unwind_Backtrace) *gcc_backtrace;
static __typeof__(_Unwind_GetIPInfo) *gcc_ip;
struct walk {
    struct stack *stack;
    unsigned long interrupted;
    int frames, is_inside;
};
static QUIET _Unwind_Reason_Code frame(struct _Unwind_Context *context, void *argument) {
    struct walk *walk = argument;
    int is_exact = 0;
    unsigned long at = gcc_ip(context, &is_exact);
    if (walk->is_inside) add(walk->stack, at);
    walk->is_inside |= is_exact && at == walk->interrupted;
    return ++walk->frames > 200 ? _URC_END_OF_STACK : _URC_NO_REASON;
}
static QUIET void by_libgcc(struct stack *stack, ucontext_t *at) {
    struct walk walk = {stack, (unsigned long)at->uc_mcontext.gregs[REG_RIP], 0, 0};
    gcc_backtrace(frame, &walk);
}
// libunwind for a program's own stack; its header may not be there.
enum { CURSOR_WORDS = 127, IS_SIGNAL_FRAME = 1, IP = 16 };
static int (*unw_init)(void *cursor, ucontext_t *, int flags);
static int (*unw_step)(void *cursor);
static int (*unw_get_reg)(void *cursor, int number, unsigned long *value);
static QUIET void by_libunwind(struct stack *stack, ucontext_t *at) {
    unsigned long cursor[CURSOR_WORDS], ip;
    if (unw_init(cursor, at, IS_SIGNAL_FRAME)) return;
    for (int frames = 0; frames < 200 && unw_step(cursor) > 0; frames++)
        if (!unw_get_reg(cursor, IP, &ip)) add(stack, ip);
}
static void (*find)(struct stack *, ucontext_t *);
// It is loaded, and does what it does once.
static QUIET int is_prepared(const char *name) {
    ucontext_t here;
    struct stack stack = {0, {0}};
    int is_gcc = !strcmp(name, "libgcc");
    void *library = dlopen(is_gcc ? "libgcc_s.so.1" : "libunwind.so.8", RTLD_NOW);
    if (!library) return 0;
    gcc_backtrace = dlsym(library, "_Unwind_Backtrace");
    gcc_ip = dlsym(library, "_Unwind_GetIPInfo");
    unw_init = dlsym(library, "_ULx86_64_init_local2");
    unw_step = dlsym(library, "_ULx86_64_step");
    unw_get_reg = dlsym(library, "_ULx86_64_get_reg");
    find = is_gcc ? by_libgcc : by_libunwind;
    if (is_gcc ? !gcc_backtrace || !gcc_ip : !unw_init || !unw_step || !unw_get_reg) return 0;
    getcontext(&here);
    find(&stack, &here);
    return 1;
}

static QUIET void print(FILE *to, const struct stack *stack) {
    if (stack->count < 0) fprintf(to, " it crashes");
    for (int i = 0; i < stack->count; i++) fprintf(to, " %x", stack->callers[i]);
    fprintf(to, "\n");
}
static QUIET void say_wrong(const struct elsewhere *at, const struct stack *or) {
    if (wrong++ >= WRONG_MAX) return;
    Dl_info where = {0};
    dladdr((void *)at->at, &where);
    const char *file = where.dli_fname ? where.dli_fname : "no module";
    const char *name = strrchr(file, '/') ? strrchr(file, '/') + 1 : file;
    fprintf(stderr, "WRONG: at %s+%#lx, %lu instructions:", name, at->at - (unsigned long)where.dli_fbase, at->times);
    print(stderr, &at->stack);
    fprintf(stderr, "  expected:");
    print(stderr, &before);
    fprintf(stderr, "  or:");
    print(stderr, or);
}
// Whether it is the stack at `to`, or at an instruction shortly before that, which was moved elsewhere.
static QUIET int leads_to(const struct stack *stack, const struct stack *to) {
    struct stack there = *stack;
    if (there.count < 1 || to->callers[0] - there.callers[0] >= 32) return 0;
    there.callers[0] = to->callers[0];
    return is_same(&there, to);
}
// An instruction of the program: what was found on the way to it must be right.
static QUIET void compare(const struct stack *callers, unsigned long at) {
    struct stack here = {0, {0}};
    add(&here, at);
    for (int i = 0; i < callers->count && here.count < FRAMES; i++) here.callers[here.count++] = callers->callers[i];
    for (int i = 0; i < pendings; i++) {
        struct elsewhere *one = &pending[i];
        if (!is_same(&one->stack, &before) && !leads_to(&one->stack, &here)) say_wrong(one, &here);
    }
    pendings = 0;
    if (!is_same(callers, &before)) print(stdout, callers);
    before = *callers;
}
// An instruction elsewhere: of those with the same callers the first is kept.
static QUIET void note(const struct stack *callers, unsigned long at) {
    for (int i = 0; i < pendings; i++) {
        if (!is_same(&pending[i].stack, callers)) continue;
        pending[i].times++;
        return;
    }
    if (pendings == PENDING) wrong++;
    else pending[pendings++] = (struct elsewhere){at, 1, *callers};
}
static QUIET struct stack found_at(ucontext_t *at) {
    static struct stack found;
    found.count = 0;
    is_unwinding = 1;
    if (sigsetjmp(crashed, 1) == 0) find(&found, at);
    else found.count = -1;
    is_unwinding = 0;
    return found;
}
static QUIET void on_step(int signal, siginfo_t *info, void *argument) {
    (void)signal, (void)info;
    ucontext_t *at = argument;
    unsigned long ip = (unsigned long)at->uc_mcontext.gregs[REG_RIP];
    const struct stack callers = found_at(at);
    steps++;
    if (is_ours(ip)) compare(&callers, ip);
    else note(&callers, ip);
    steps_elsewhere += !is_ours(ip);
}
static QUIET void on_crash(int signal) {
    if (is_unwinding) siglongjmp(crashed, 1);
    fprintf(stderr, "WRONG: signal %d outside of an unwinder\n", signal);
    _exit(4);
}
// Functions of their own: their unwind tables are right at each instruction, too.
#define STEPS(name, change)                                                                        \
    __asm__(".text\n.type " #name ", @function\n" #name ":\n.cfi_startproc\npushfq\n"               \
            ".cfi_adjust_cfa_offset 8\n" change " (%rsp)\npopfq\n.cfi_adjust_cfa_offset -8\nret\n"   \
            ".cfi_endproc\n.size " #name ", . - " #name);                                          \
    extern void name(void)
STEPS(begin_steps, "orl $0x100,");
STEPS(end_steps, "andl $~0x100,");

static TRACED long leaf(long x) {
    SITE();
    COUNT();
    HIDE(x);
    return x * 3;
}
static TRACED long deep(long n, long x) {
    SITE();
    COUNT();
    return n ? INNER(deep(n - 1, x)) + 1 : INNER(leaf(x));
}
// A function with a frame of its own, and registers of its caller in it.
static TRACED long wide(long a, long b, long c, long d, long e, long f) {
    SITE();
    COUNT();
    volatile long more[40];
    for (int i = 0; i < 40; i++) more[i] = a + b;
    long sum = INNER(leaf(a)) + INNER(leaf(b)) + c * d + INNER(leaf(e));
    return sum + f + more[7];
}
static TRACED long tail_end(long x) {
    SITE();
    COUNT();
    HIDE(x);
    return x + 7;
}
static TRACED long tail(long x) {
    SITE();
    COUNT();
    HIDE(x);
    return x > 5 ? tail_end(x) : x;
}

static jmp_buf back;
static volatile int is_left = 1;
static TRACED long jumps(long n) {
    SITE();
    COUNT();
    if (n) return INNER(jumps(n - 1)) + 1;
    if (is_left) longjmp(back, 1);
    return 0;
}

static QUIET long plain(void) {
    long sum = deep(3, 1);
    begin_steps();
    sum += deep(3, 1) + INNER(wide(1, 2, 3, 4, 5, 6)) + INNER(tail(9)) + INNER(deep(1, sum));
    end_steps();
    return sum;
}
// Calls that were left by a jump end with the next one.
static QUIET long left(void) {
    if (setjmp(back) == 0) jumps(3);
    begin_steps();
    long sum = deep(2, 1);
    end_steps();
    return sum;
}
// A thread's first calls, with all that they prepare.
static QUIET void *first(void *unused) {
    begin_steps();
    long sum = deep(2, 1) + INNER(leaf(2));
    end_steps();
    return sum ? unused : NULL;
}
static QUIET long thread(void) {
    pthread_t one;
    expect(pthread_create(&one, NULL, first, NULL) == 0, "a thread");
    return pthread_join(one, NULL);
}
// A stack that is not the thread's own.
static ucontext_t outside, inside;
static QUIET void on_stack(void) { plain(); }
static QUIET long coroutine(void) {
    getcontext(&inside);
    inside.uc_stack.ss_size = 256 << 10;
    inside.uc_stack.ss_sp = malloc(inside.uc_stack.ss_size);
    inside.uc_link = &outside;
    makecontext(&inside, on_stack, 0);
    return swapcontext(&outside, &inside);
}
// A handler on the alternate signal stack.
static QUIET void on_user(int signal) { signal ? plain() : 0; }
static QUIET long alternate(void) {
    size_t bytes = 256 << 10;
    stack_t stack = {.ss_sp = malloc(bytes), .ss_size = bytes};
    struct sigaction action = {.sa_handler = on_user, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    return sigaltstack(&stack, NULL) + raise(SIGUSR1);
}
// Pages of the ring are filled.
static QUIET long pages(void) {
    long sum = 0;
    begin_steps();
    for (int i = 0; i < 300; i++) sum += INNER(leaf(i));
    end_steps();
    return sum;
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        long (*run)(void);
    } parts[] = {{"plain", plain},         {"left", left},           {"thread", thread},
                 {"coroutine", coroutine}, {"alternate", alternate}, {"pages", pages}};
    if (count < 2 || !is_prepared(arguments[1])) return 77;
    // A tracer may be loaded meanwhile: it looks into the program's own code again and again.
    struct pollfd input = {.events = POLLIN};
    while (poll(&input, 1, 1) == 0);
    struct sigaction step = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    struct sigaction crash = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
    sigaction(SIGTRAP, &step, NULL);
    sigaction(SIGSEGV, &crash, NULL);
    sigaction(SIGBUS, &crash, NULL);
    for (int n = 2; n < count; n++)
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
            if (!strcmp(parts[i].name, arguments[n])) {
                parts[i].run();
                printf("%s\n", parts[i].name);
            }
    fflush(stdout);
    fprintf(stderr, "%lu steps, %lu of them elsewhere, %lu wrong\n", steps, steps_elsewhere, wrong);
    return wrong ? 3 : 0;
}
