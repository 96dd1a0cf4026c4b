/* A function on which the kernel sets a uprobe. It begins with a NOP of five bytes, the cheapest
 * place: others trap, and most are stepped behind the trap, 20 times as slow here. */
#include <stdint.h>

__attribute__((noinline, used)) void bench_event(uint64_t value) {
    __asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0, 0" : : "r"(value) : "memory");
}

void tracer_events(long n) {
    for (long i = 0; i < n; i++)
        bench_event((uint64_t)i);
}
