// Functions that end in a jump to another function on a condition. Counts the calls itself: prints `right` where
// all is as it must be. condition ROUNDS; 0: until SIGTERM. With ASSEMBLED the functions are as clang 14 makes
// them of the C below with -Os: a sled stands between a comparison and the jump that needs its flags.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static volatile sig_atomic_t over;
static volatile long refilled, seen, kept;

static void end(int signal) {
    (void)signal;
    over = 1;
}

__attribute__((noinline)) void refill(long *left) {
    refilled++;
    *left = 10;
}
__attribute__((noinline)) void on_big(long n) { seen += n; }

#ifdef ASSEMBLED
#define SLED(kind, function)                                            \
    "771: jmp 772f\n .byte 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0\n 772:\n" ENTRY("771b", kind, function)
#define RETURN(function)                                                \
    "771: ret\n .byte 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 2, 0, 0\n" ENTRY("771b", "1", function)
#define ENTRY(at, kind, function)                                       \
    ".pushsection xray_instr_map, \"a\", @progbits\n .balign 16\n"       \
    ".quad " at " - .\n .quad " #function " - .\n"                       \
    ".byte " kind ", 1, 2\n .zero 13\n .popsection\n"
#define FUNCTION(name, body)                                            \
    ".globl " #name "\n .type " #name ", @function\n .balign 16\n"       \
    #name ": .cfi_startproc\n" SLED("0", name) body RETURN(name)         \
    ".cfi_endproc\n .size " #name ", . - " #name "\n"

__asm__(".text\n"
        FUNCTION(take, "decq (%rdi)\n" SLED("2", take) "je refill\n")
        FUNCTION(look, "cmpq $1000, %rdi\n" SLED("2", look) "jg on_big\n")
        FUNCTION(negative, "xorl %eax, %eax\n subq %rdi, %rax\n movq %rax, %rdi\n testq %rdi, %rdi\n"
                 SLED("2", negative) "jg on_big\n")
        // What it keeps lies below its stack pointer, in a register, and in the flags.
        FUNCTION(keep, "movq %rdi, -8(%rsp)\n movq %rdi, %rcx\n cmpq $1000, %rdi\n stc\n"
                 SLED("2", keep) "ja on_big\n movq -8(%rsp), %rax\n adcq %rcx, %rax\n"));
void take(long *left);
void look(long n);
void negative(long n);
long keep(long n);
#else
__attribute__((noinline)) void take(long *left) {
    if (--*left == 0)
        refill(left);
}
__attribute__((noinline)) void look(long n) {
    if (n > 1000)
        on_big(n);
}
__attribute__((noinline)) void negative(long n) {
    if (n < 0)
        on_big(-n);
}
__attribute__((noinline)) long keep(long n) { return 2 * n + 1; }
#endif

int main(int count, char **words) {
    long rounds = count > 1 ? atol(words[1]) : 1000, done = 0, left = 10, expected = 0;
    signal(SIGTERM, end);
    if (rounds == 0)
        puts("runs"), fflush(stdout);
    for (; rounds ? done < rounds : !over; done++) {
        long n = done % 2000;
        take(&left);
        look(n);
        expected += n > 1000 ? n : 0;
        negative(done % 3 - 1);
        expected += done % 3 == 0;
        kept += keep(n % 900);
        expected += 0 * kept;
    }
    long sum = 0;
    for (long n = 0; n < done; n++)
        sum += 2 * (n % 2000 % 900) + 1;
    int is_right = refilled == done / 10 && seen == expected && kept == sum && left == 10 - done % 10;
    printf("%s: %ld rounds, refilled %ld, seen %ld of %ld, kept %ld of %ld\n", is_right ? "right" : "WRONG", done, refilled,
           seen, expected, kept, sum);
    return !is_right;
}
