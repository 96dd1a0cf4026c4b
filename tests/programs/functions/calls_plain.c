// Calls of every plain kind: what is passed and returned in which register must not matter.
#include "calls.h"
#include <complex.h>
#include <errno.h>
#include <immintrin.h>
#include <stdarg.h>
#include <stdlib.h>

typedef struct {
    long a, b, c, d, e;
} big;
typedef struct {
    double x;
    long n;
} mixed;
typedef struct {
    long a, b;
} pair;

static TRACED int recurse(int n) {
    COUNT();
    return n == 0 ? 0 : INNER(recurse(n - 1)) + 1;
}

static TRACED int is_odd(int n);
static TRACED int is_even(int n) {
    COUNT();
    return n == 0 || is_odd(n - 1);
}
static TRACED int is_odd(int n) {
    COUNT();
    return n != 0 && is_even(n - 1);
}

// A chain of calls in the place of a return.
static TRACED long tail_end(long n) {
    COUNT();
    return n + 7;
}
static TRACED long tail_loop(long n, long sum);
static TRACED long tail_other(long n, long sum) {
    COUNT();
    return n == 0 ? tail_end(sum) : tail_loop(n - 1, sum + 1);
}
static TRACED long tail_loop(long n, long sum) {
    COUNT();
    return n == 0 ? tail_end(sum) : tail_other(n - 1, sum + 2);
}
static TRACED long tail_start(long n) {
    COUNT();
    return tail_loop(n, 0);
}
static TRACED long around_tails(long n) {
    COUNT();
    return tail_start(n) + tail_start(n / 2);
}

static TRACED double sum_of(int count, ...) {
    COUNT();
    va_list list;
    double sum = 0;
    va_start(list, count);
    for (int i = 0; i < count; i++) sum += i % 2 ? va_arg(list, int) : va_arg(list, double);
    va_end(list);
    return sum;
}
static TRACED big big_of(long n) {
    COUNT();
    big b = {n, n + 1, n + 2, n + 3, n + 4};
    return b;
}
static TRACED mixed mixed_of(double x, long n) {
    COUNT();
    mixed m = {x * 2, n * 3};
    return m;
}
static TRACED pair pair_of(long a, long b) {
    COUNT();
    pair p = {a ^ 0x5555, b ^ 0x3333};
    return p;
}
static TRACED long double extended(long double x, int n) {
    COUNT();
    return n == 0 ? x : extended(x * 1.25L, n - 1) + 0.5L;
}
static TRACED long double _Complex two_extended(long double re, long double im) {
    COUNT();
    return (re + 1) + (im + 2) * (long double _Complex)I;
}
static WHOLE long eight(long a, long b, long c, long d, long e, long f, long g, double x, double y,
                         float z, long h) {
    COUNT();
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + (long)(x * 10 + y * 100 + z);
}
static TRACED __attribute__((target("avx2"))) __m256i wide(__m256i a, __m256i b, int n) {
    COUNT();
    return n == 0 ? _mm256_add_epi64(a, b) : INNER(wide(_mm256_add_epi64(a, b), b, n - 1));
}
static TRACED __attribute__((target("avx2"))) int wides(void) {
    COUNT();
    __m256i sum = wide(_mm256_set_epi64x(1, 2, 3, 4), _mm256_set1_epi64x(1L << 40), 9);
    long long out[4];
    _mm256_storeu_si256((__m256i *)out, sum);
    return out[0] == 4 + (10LL << 40) && out[3] == 1 + (10LL << 40);
}

// The compiler knows which registers this one leaves alone, and keeps values there (-fipa-ra).
static long seen;
static TRACED void touches_little(long n) {
    COUNT();
    seen += n;
}
static TRACED long keeps_much(long a, long b, long c, double x, double y) {
    COUNT();
    long d = a * 3, e = b * 5, f = c * 7, g = a ^ b, h = b ^ c;
    double z = x * y, w = x + y;
    touches_little(d);
    touches_little(e);
    return a + b + c + d + e + f + g + h + (long)(x + y + z + w);
}

// The static chain goes in a register of its own. Not with -mfentry: gcc leaves such functions out.
#ifndef NO_NESTED
static TRACED long with_nested(long n) {
    COUNT();
    long local = n * 11;
    auto TRACED long inner(long m);
    long inner(long m) {
        COUNT();
        return m == 0 ? local : INNER(inner(m - 1)) + 1;
    }
    return inner(5);
}
#else
static QUIET long with_nested(long n) { return n * 11 + 5; }
#endif

static TRACED int keeps_errno(int n) {
    COUNT();
    return n == 0 ? errno : INNER(keeps_errno(n - 1));
}

static TRACED __attribute__((constructor)) void before_main(void) {
    COUNT();
    recurse(3);
}
static TRACED __attribute__((destructor(200))) void after_exit(void) {
    COUNT();
    recurse(4);
}
static TRACED void at_exit(void) {
    COUNT();
    recurse(5);
}

int main(int count, char **arguments) {
    int depth = count > 1 ? atoi(arguments[1]) : 1000;
    atexit(at_exit);
    errno = 0;
    for (int i = 0; i < 3; i++) {
        errno = 4711;
        int first = keeps_errno(20);
        printf("recursion %d even %d errno %d %d\n", recurse(depth), is_even(101), first, errno);
        printf("tails %ld\n", around_tails(1000));
        printf("varargs %f\n", sum_of(6, 1.5, 2, 3.25, 4, 5.125, 6));
        big b = big_of(i);
        mixed m = mixed_of(i + 0.5, i);
        pair p = pair_of(i, -i);
        printf("structs %ld %ld %f %ld %lx %lx\n", b.a, b.e, m.x, m.n, p.a, p.b);
        long double _Complex two = two_extended(i, -i);
        printf("x87 %Lf %Lf %Lf\n", extended(1.0L, 30), creall(two), cimagl(two));
        printf("many %ld\n", eight(i, 2, 3, 4, 5, 6, 7, 1.5, 2.5, 3.5f, 8));
        printf("wide %d\n", __builtin_cpu_supports("avx2") ? wides() : 1);
        printf("ipa-ra %ld %ld\n", keeps_much(i, i + 1, i + 2, 1.5, 2.5), seen);
        printf("nested %ld\n", with_nested(i));
    }
    for (int i = 0; i < 2000; i++) recurse(10);
    return 0;
}
