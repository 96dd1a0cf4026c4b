/* Two loads: functions that do nothing, so that all of the time is the call's, and a program of
 * small functions that do something: a tree, a sort and a checksum. */
#include "work.h"

#define LEAF(n) \
    __attribute__((noinline)) long leaf_##n(long x) { \
        __asm__ volatile("" : "+r"(x)); \
        return x; \
    }
LEAF(0) LEAF(1) LEAF(2) LEAF(3) LEAF(4) LEAF(5) LEAF(6) LEAF(7)

/* What is traced when all that runs is not. */
void never_called(void) {}

#define KEYS 32

struct node {
    struct node *left, *right;
    unsigned key;
};

static struct node pool[KEYS];
static unsigned sorted[KEYS];
static volatile unsigned sink;

static __attribute__((noinline)) unsigned mix(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ x >> 16;
}

static __attribute__((noinline)) struct node *insert(struct node *root, struct node *new) {
    if (!root)
        return new;
    struct node **side = new->key < root->key ? &root->left : &root->right;
    *side = insert(*side, new);
    return root;
}

static __attribute__((noinline)) unsigned collect(const struct node *root, unsigned at) {
    if (!root)
        return at;
    at = collect(root->left, at);
    sorted[at++] = root->key;
    return collect(root->right, at);
}

static __attribute__((noinline)) unsigned checksum(const unsigned *keys, int n) {
    unsigned sum = 0;
    for (int i = 0; i < n; i++)
        sum = (sum << 5 | sum >> 27) ^ keys[i];
    return sum;
}

void program_round(long seed) {
    struct node *root = 0;
    for (int i = 0; i < KEYS; i++) {
        pool[i] = (struct node){0, 0, mix((unsigned)seed * KEYS + i)};
        root = insert(root, &pool[i]);
    }
    sink += checksum(sorted, (int)collect(root, 0));
}
