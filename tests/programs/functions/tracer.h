/* What the traced programs share: the tracer, preloaded or loaded now, and a target that counts. */
#ifndef TRACER_H
#define TRACER_H

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNTS_MAX 65536

struct ringmark_site {
    uint32_t id, kind;
    uint64_t address, return_address, function;
    const char *symbol, *module, *reason;
};

extern uint64_t counts[COUNTS_MAX];
extern const char count_entry[], count_again[], count_exit[];

static size_t (*scan)(int threads);
static void (*list)(void (*visit)(void *, const struct ringmark_site *), void *argument);
static size_t (*switch_sites)(const uint32_t *ids, size_t count, const void *target);

#define UNTRACED __attribute__((patchable_function_entry(0, 0), noinline))

/* Counts entries by site number; every register is kept. */
__asm__(".globl counts, count_entry, count_again, count_exit\n"
        ".comm counts, 8 * 65536, 8\n"
        ".text\n"
        "count_again: jmp count_entry\n"
        "count_entry: count_exit:\n"
        "  push %rax\n"
        "  push %rcx\n"
        "  mov 16(%rsp), %eax\n"
        "  lea counts(%rip), %rcx\n"
        "  lock incq (%rcx,%rax,8)\n"
        "  pop %rcx\n"
        "  pop %rax\n"
        "  lea 8(%rsp), %rsp\n"
        "  ret\n");

UNTRACED static void *symbol_of(void *library, const char *name) {
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "no %s: %s\n", name, dlerror());
        exit(2);
    }
    return found;
}

/* Uses the preloaded tracer, else loads $TRACER. */
UNTRACED static void load_tracer(void) {
    void *library = RTLD_DEFAULT;
    if (!dlsym(library, "ringmark_functions_scan") && !(library = dlopen(getenv("TRACER"), RTLD_NOW))) {
        fprintf(stderr, "no tracer: %s\n", dlerror());
        exit(2);
    }
    scan = symbol_of(library, "ringmark_functions_scan");
    list = symbol_of(library, "ringmark_functions_list");
    switch_sites = symbol_of(library, "ringmark_functions_switch");
}

/* Sites whose function's name begins with `prefix`, of one kind. */
struct selection {
    const char *prefix;
    uint32_t kind;
    size_t count;
    uint32_t ids[COUNTS_MAX];
    uint64_t addresses[COUNTS_MAX];
};

UNTRACED static void select_one(void *argument, const struct ringmark_site *site) {
    struct selection *to = argument;
    if (site->reason || site->kind != to->kind || to->count == COUNTS_MAX)
        return;
    if (strncmp(site->symbol, to->prefix, strlen(to->prefix)))
        return;
    to->ids[to->count] = site->id;
    to->addresses[to->count++] = site->address;
}

UNTRACED static void select_sites(struct selection *to, const char *prefix, uint32_t kind) {
    to->prefix = prefix;
    to->kind = kind;
    to->count = 0;
    list(select_one, to);
}

UNTRACED static uint64_t sum_counts(const struct selection *of) {
    uint64_t sum = 0;
    for (size_t i = 0; i < of->count; i++)
        sum += __atomic_load_n(&counts[of->ids[i]], __ATOMIC_RELAXED);
    return sum;
}

#endif
