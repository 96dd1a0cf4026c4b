/* Every kind, shape and size of record once; compiled as C11 and as C++17. */
#include <stdio.h>
#include <string.h>

#define RINGMARK_TARGET "values"
#include <ringmark.h>

RINGMARK_EVENT(numbers, "numbers", (u8, a), (i8, b), (u16, c), (i16, d), (u32, e), (i32, f), (u64, g), (i64, h));
RINGMARK_EVENT(packed, "packed", (u8, a), (u64, b), (u16, c), (bool, yes), (bool, no), (u32, d), (u8, e));
RINGMARK_EVENT(floats, "floats", (f32, small), (f64, large), (f32, last));
RINGMARK_EVENT(texts, "texts", (str, first), (u32, between), (str, empty), (str, null), (bytes, raw), (str, last));
RINGMARK_EVENT(none, "none");
RINGMARK_EVENT_WITH(warned, WARN, "net", "warned", (u8, code));
RINGMARK_EVENT_WITH(chatter, TRACE, "", "chatter", (u64, n));
RINGMARK_EVENT(sixteen, "sixteen", (u8, f1), (u8, f2), (u8, f3), (u8, f4), (u8, f5), (u8, f6), (u8, f7), (u8, f8),
               (u8, f9), (u8, f10), (u8, f11), (u8, f12), (u8, f13), (u8, f14), (u8, f15), (u8, f16));
RINGMARK_COUNTER(depth, "queue.depth", u64);
RINGMARK_COUNTER(load, "load", f64);
RINGMARK_SPAN(plain, "plain");
RINGMARK_SPAN(query, "query", (u32, rows), (str, table));
RINGMARK_EVENT(raw, "raw", (u64, first), (u64, second));
RINGMARK_EVENT(large, "large", (bytes, all));

static int evaluated;

static uint64_t evaluate(uint64_t value) {
    ++evaluated;
    return value;
}

static void by_hand(void) {
    if (ringmark_is_on(raw) == 0) {
        return;
    }
    struct ringmark_reservation it = ringmark_reserve(ringmark_is_on(raw), 2);
    if (it.header != NULL) {
        ringmark_set_word(&it, 0, 1);
        ringmark_cancel(&it);
    }
    it = ringmark_reserve(ringmark_is_on(raw), 2);
    if (it.header != NULL) {
        ringmark_set_word(&it, 0, 11);
        ringmark_set_word(&it, 1, 22);
        ringmark_commit(&it);
    }
    ringmark_reserve_call(&it, ringmark_is_on(raw), 2);
    if (it.header != NULL) {
        ringmark_set_word(&it, 0, 33);
        ringmark_set_word(&it, 1, 44);
        ringmark_commit_call(&it);
    }
    ringmark_reserve_call(&it, ringmark_is_on(raw), 2);
    if (it.header != NULL) {
        ringmark_cancel_call(&it);
    }
    it = ringmark_reserve_at(ringmark_is_on(raw), 2, ringmark_ticks());
    if (it.header != NULL) {
        ringmark_set_word(&it, 0, 55);
        ringmark_set_word(&it, 1, 66);
        ringmark_commit(&it);
    }
}

/* More than 254 words, and more than any page holds. */
static void large_ones(void) {
    static unsigned char bytes[2 << 20];
    for (size_t i = 0; i < sizeof bytes; ++i) {
        bytes[i] = (unsigned char)i;
    }
    struct ringmark_bytes all = {bytes, 3001};
    ringmark_event(large, all);
    all.bytes = sizeof bytes;
    ringmark_event(large, all);
    all.bytes = 5;
    ringmark_event(large, all);
}

static void spans(void) {
    struct ringmark_span span = ringmark_begin(query);
    {
        RINGMARK_SCOPE(plain);
        RINGMARK_SCOPE(query, 7, "inner");
    }
    ringmark_end(query, span, 9, "outer");
    struct ringmark_span bare = ringmark_begin(plain);
    ringmark_end(plain, bare);
}

int main(int count, char **words) {
    char error[200] = "";
    const char *options = count > 1 ? words[1] : NULL;
    const char *filter = count > 2 ? words[2] : NULL;
    ringmark_event(depth, evaluate(1)); /* Before there is a session: nothing. */
    if (ringmark_start(options, filter, error, sizeof error) != 0) {
        printf("off: %s\n", error);
        return 3;
    }
    if (ringmark_attach_thread() != 0) {
        return 4;
    }
    ringmark_event(numbers, 255, -128, 65535, -32768, 4294967295U, INT32_MIN, UINT64_MAX, INT64_MIN);
    ringmark_event(packed, 1, 0x0102030405060708U, 2, true, false, 3, 4);
    ringmark_event(floats, -1.5F, 6.02214076e23, 0.25F);
    const struct ringmark_bytes raw_bytes = {"\0\xff", 2};
    ringmark_event(texts, "eight ch", 77, "", NULL, raw_bytes, "\xc3\xa4 and more than eight");
    ringmark_event(none);
    ringmark_event(warned, 9);
    ringmark_event(chatter, evaluate(5));
    ringmark_event(sixteen, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
    ringmark_event(depth, 6);
    ringmark_event(load, 0.5);
    spans();
    by_hand();
    large_ones();
    if (ringmark_register_types(1, &ringmark_thread_block, NULL, NULL) != 1) { /* Another version's header. */
        return 5;
    }
    printf("evaluated %d\n", evaluated);
    ringmark_close();
    ringmark_event(none);
    return ringmark_foreign_events() == 0 ? 0 : 6;
}
