/* Two reservations, of which the first one ends first; the second one ends a lap of the ring later.
 *
 *     crossed inline|call ROUNDS   prints how many events were emitted */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RINGMARK_TARGET "crossed"
#include <ringmark.h>

RINGMARK_EVENT(outer, "Outer", (u64, value));
RINGMARK_EVENT(late, "Late", (u64, a), (u64, b), (u64, c), (u64, d), (u64, e));
RINGMARK_EVENT(inner, "aside.inner", (u64, seq));
RINGMARK_EVENT(after, "aside.after", (u64, seq));

static int is_inline;

static struct ringmark_reservation reserve(uint32_t id, uint64_t words) {
    if (is_inline) {
        return ringmark_reserve(id, words);
    }
    struct ringmark_reservation it;
    ringmark_reserve_call(&it, id, words);
    return it;
}

static void commit(const struct ringmark_reservation *it) {
    if (is_inline) {
        ringmark_commit(it);
    } else {
        ringmark_commit_call(it);
    }
}

static void emit(uint32_t id, uint64_t count) {
    for (uint64_t seq = 0; seq < count; ++seq) {
        const struct ringmark_reservation it = reserve(id, 1);
        if (it.header != NULL) {
            ringmark_set_word(&it, 0, seq);
            commit(&it);
        }
    }
}

int main(int count, char **words) {
    if (count < 3 || ringmark_start_from_env() != 0) {
        return 3;
    }
    is_inline = strcmp(words[1], "inline") == 0;
    const uint64_t rounds = strtoull(words[2], NULL, 10);
    emit(ringmark_is_on(after), 1);
    for (uint64_t round = 0; round < rounds; ++round) {
        const struct ringmark_reservation first = reserve(ringmark_is_on(outer), 1);
        const struct ringmark_reservation second = reserve(ringmark_is_on(late), 5);
        if (first.header != NULL) {
            ringmark_set_word(&first, 0, round);
            commit(&first);
        }
        emit(ringmark_is_on(inner), 500);
        if (second.header != NULL) {
            for (uint64_t word = 0; word < 5; ++word) {
                ringmark_set_word(&second, word, round);
            }
            commit(&second);
        }
        emit(ringmark_is_on(after), 300);
    }
    printf("%llu\n", (unsigned long long)(1 + 802 * rounds));
    return 0;
}
