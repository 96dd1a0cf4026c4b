/* The functions that are switched: a hundred of the compiler's, or with -DSITES=n as many of the
 * assembler's, which takes less time to build. */
#ifdef SITES

typedef uint32_t function(uint32_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

#define TEXT(x) #x
#define TEXT_OF(x) TEXT(x)
/* The n-th adds n to its first argument. */
__asm__(".macro one\n"
        "  .type f\\@, @function\n"
        "f\\@: .fill 5, 1, 0x90\n"
        "  lea \\@ - first(%rdi), %eax\n"
        "  ret\n"
        "  .size f\\@, . - f\\@\n"
        "  .skip \\@ % 5 + 1, 0xcc\n"
        "  .pushsection __patchable_function_entries, \"aw\", @progbits\n"
        "  .quad f\\@\n"
        "  .popsection\n"
        "  .pushsection .data.rel.ro, \"aw\", @progbits\n"
        "  .quad f\\@\n"
        "  .popsection\n"
        ".endm\n"
        ".macro number\n"
        "  .set first, \\@ + 1\n"
        ".endm\n"
        ".pushsection .data.rel.ro, \"aw\", @progbits\n"
        ".balign 8\n"
        "functions:\n"
        ".popsection\n"
        ".text\n"
        "number\n"
        ".rept " TEXT_OF(SITES) "\n"
        "  one\n"
        ".endr\n");
extern function *const volatile functions[] __asm__("functions");
#define FUNCTIONS ((size_t)(SITES))
#define EXPECTED(i, x) ((x) + (uint32_t)(i))

#else

#define TEN(F, p) F(p##0) F(p##1) F(p##2) F(p##3) F(p##4) F(p##5) F(p##6) F(p##7) F(p##8) F(p##9)
#define HUNDRED(F, p) TEN(F, p##0) TEN(F, p##1) TEN(F, p##2) TEN(F, p##3) TEN(F, p##4) \
    TEN(F, p##5) TEN(F, p##6) TEN(F, p##7) TEN(F, p##8) TEN(F, p##9)

typedef uint32_t function(uint32_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);

/* Every argument register and the result matter. */
#define DEFINE(n) \
    __attribute__((noinline)) uint32_t f##n(uint32_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t g) { \
        return (a * 2654435761u + n##u) ^ (uint32_t)(b + 3 * c + 5 * d + 7 * e + 11 * g); \
    }
HUNDRED(DEFINE, 1)
#define NAME(n) f##n,
static function *const volatile functions[] = {HUNDRED(NAME, 1)};
#define FUNCTIONS (sizeof functions / sizeof *functions)
#define EXPECTED(i, x) \
    (((x) * 2654435761u + 100 + (uint32_t)(i)) ^ (uint32_t)(1 + 3 * 2 + 5 * 3 + 7 * (uint64_t)(x) + 11 * 5))

#endif
