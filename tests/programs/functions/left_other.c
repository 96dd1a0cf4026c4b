// The second file of left.c.
static __attribute__((noipa)) long helper(long n) {
    __asm__ volatile("" : "+r"(n));
    return n + 3;
}
__attribute__((patchable_function_entry(0))) long other(long rounds) {
    long sum = 0;
    for (long n = 0; n < rounds; n++)
        sum += helper(n);
    return sum;
}
