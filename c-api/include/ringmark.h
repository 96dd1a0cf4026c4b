/* Ringmark for C11 and C++17 on Linux on x86-64 and aarch64, gcc or clang.
 *
 *     RINGMARK_EVENT(request_done, "request.done", (u16, status), (str, path));
 *     RINGMARK_SPAN(db_query, "db.query", (u32, rows));
 *     RINGMARK_COUNTER(queue_depth, "queue.depth", u64);
 *
 *     int main(void) {
 *         ringmark_start_from_env();
 *         RINGMARK_SCOPE(db_query, 3);              // a span, until the end of the block
 *         ringmark_event(request_done, 200, "/");   // evaluates its arguments only if it is on
 *         ringmark_event(queue_depth, 7);
 *     }
 *
 * The first three stand at file scope, and define a type for this file. Kinds of fields: u8 u16 u32
 * u64 i8 i16 i32 i64 f32 f64 bool str (a string, or NULL: empty) bytes (a struct ringmark_bytes).
 * Types are collected in a linker section and registered before main, or when their shared object is
 * loaded, which then stays mapped; so tools can switch them before they first happen.
 *
 * An event that is on costs what it costs in Rust: all of it is in this header but what happens
 * once a page, once a thread, or with another clock than the processor's counter. */
#ifndef RINGMARK_H
#define RINGMARK_H

#include <features.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ringmark_layout.h"

#if !(defined(__x86_64__) || defined(__aarch64__)) || !defined(__linux__) || !defined(__LP64__)
#error "ringmark.h: Linux on x86-64 or aarch64 only"
#endif
#ifndef __GLIBC__
#error "ringmark.h: with the GNU C library only, as libringmark"
#endif

#ifdef __cplusplus
#define RINGMARK_ASSERT_ static_assert
extern "C" {
#else
#define RINGMARK_ASSERT_ _Static_assert
#endif

#define RINGMARK_INLINE_ static inline __attribute__((__always_inline__, __unused__))
#define RINGMARK_LIKELY_(x) __builtin_expect(!!(x), 1)

/* ---- What the library does ------------------------------------------------------------------ */

/* Starts a session; options as in the variable RINGMARK ("mode=discard,ring=1M"), filter as in
 * RINGMARK_FILTER; NULL: the defaults. 0: it runs. -1: tracing is off, the reason is in `error`, and
 * the program can go on: every event does nothing. */
int ringmark_start(const char *options, const char *filter, char *error, size_t error_bytes);
/* As the environment says: RINGMARK, RINGMARK_FILTER, RINGMARK_TAGS. -1: not wanted, or not possible. */
int ringmark_start_from_env(void);
/* Gets this thread's ring ahead of its first event. -1: there is none. */
int ringmark_attach_thread(void);
/* Ends the session, for good. It also ends with the process. */
void ringmark_close(void);
/* Events that were not recorded because this process is a raw clone of a traced one. */
uint64_t ringmark_foreign_events(void);

/* ---- What both sides know ------------------------------------------------------------------- */

struct ringmark_writer {
    uint64_t begun;
    uint64_t ended;
    uint64_t reservations;
    uintptr_t cursor;
    uintptr_t end;
    uint64_t tick_base;
    uint64_t clock;
    uint64_t *top;
};

/* A running span; all zero: it is off. Copies of it end it once. */
struct ringmark_span {
    uint32_t id;
    uint64_t start;
    uint64_t *frame; /* its place among the open spans of its thread */
    uint64_t head;   /* what stands there while it is open; 0: it is only counted */
};

/* A reserved record: write its payload, then commit or cancel it on this thread. Several may be open,
 * and end in any order. */
struct ringmark_reservation {
    struct ringmark_writer *writer;
    uint64_t *header; /* NULL: the event is lost, and counted */
    uint64_t *payload;
    uint64_t commit;
    uint64_t cancel;
};

struct ringmark_field {
    const char *name;
    uint32_t offset;
    uint32_t kind;
    uint32_t semantic;
    uint32_t reserved;
};

struct ringmark_type {
    uint32_t enabled; /* its id if it is on, else 0 */
    uint32_t id;
    const char *name;
    const char *target;
    const char *category;
    const char *file;
    const struct ringmark_field *fields;
    uint32_t field_count;
    uint32_t line;
    uint32_t level;
    uint32_t shape;
};

#define RINGMARK_AT_(type, member, offset)                                                             \
    RINGMARK_ASSERT_(offsetof(struct type, member) == (offset), "ringmark.h and ringmark_layout.h differ")
RINGMARK_AT_(ringmark_writer, begun, RINGMARK_WRITER_BEGUN);
RINGMARK_AT_(ringmark_writer, ended, RINGMARK_WRITER_ENDED);
RINGMARK_AT_(ringmark_writer, reservations, RINGMARK_WRITER_RESERVATIONS);
RINGMARK_AT_(ringmark_writer, cursor, RINGMARK_WRITER_CURSOR);
RINGMARK_AT_(ringmark_writer, end, RINGMARK_WRITER_END);
RINGMARK_AT_(ringmark_writer, tick_base, RINGMARK_WRITER_TICK_BASE);
RINGMARK_AT_(ringmark_writer, clock, RINGMARK_WRITER_CLOCK);
RINGMARK_AT_(ringmark_writer, top, RINGMARK_WRITER_TOP);
RINGMARK_AT_(ringmark_type, enabled, RINGMARK_TYPE_ENABLED);
RINGMARK_AT_(ringmark_type, name, RINGMARK_TYPE_STATE_BYTES);
RINGMARK_ASSERT_(sizeof(struct ringmark_type) == RINGMARK_TYPE_BYTES, "struct ringmark_type");
RINGMARK_ASSERT_(sizeof(struct ringmark_field) == RINGMARK_FIELD_BYTES, "struct ringmark_field");
RINGMARK_ASSERT_(sizeof(struct ringmark_reservation) == RINGMARK_RESERVATION_BYTES, "struct ringmark_reservation");

RINGMARK_ASSERT_(sizeof(struct ringmark_span) == RINGMARK_SPAN_BYTES, "struct ringmark_span");

/* The thread's own block; its first word is the thread's writer. */
struct ringmark_thread_block {
    struct ringmark_writer *writer;
    uint64_t others[3];
};
extern __thread struct ringmark_thread_block ringmark_thread_block __attribute__((__tls_model__("initial-exec")));

/* ---- Off the straight line ------------------------------------------------------------------ */

void ringmark_reserve_slow(struct ringmark_reservation *to, uint32_t type, uint64_t payload_words, uint64_t tick,
                           uint32_t is_at) __attribute__((__cold__, __nothrow__));
struct ringmark_writer *ringmark_attach_slow(void) __attribute__((__cold__, __nothrow__));
uint64_t *ringmark_claim_slow(void) __attribute__((__cold__, __nothrow__));
void ringmark_pop_slow(const struct ringmark_span *span, uint32_t is_lexical) __attribute__((__cold__, __nothrow__));
uint64_t ringmark_ticks_slow(void) __attribute__((__cold__, __nothrow__));
int ringmark_register_types(uint64_t layout, const void *block, struct ringmark_type *const *start,
                            struct ringmark_type *const *stop);

/* The same as functions, for callers that cannot have the inline ones. */
void ringmark_reserve_call(struct ringmark_reservation *to, uint32_t type, uint64_t payload_words)
    __attribute__((__nothrow__));
void ringmark_commit_call(const struct ringmark_reservation *of) __attribute__((__nothrow__));
void ringmark_cancel_call(const struct ringmark_reservation *of) __attribute__((__nothrow__));

#ifdef __cplusplus
}
#endif

/* ---- The straight line ---------------------------------------------------------------------- */

#define RINGMARK_LOAD_(place) __atomic_load_n(&(place), __ATOMIC_RELAXED)
#define RINGMARK_STORE_(place, value) __atomic_store_n(&(place), (value), __ATOMIC_RELAXED)

/* What takes a processor's own instructions, as in ring/src/arch. Not locked: only this thread and its handlers write
 * these words.
 *
 * RINGMARK_INC_(place): adds 1; whole for signal handlers of this thread; nothing moves over it.
 * RINGMARK_REPLACE_(place, found, value): if `place` is `found`, makes it `value`; else `found` is what it is.
 * RINGMARK_ADD_LOADED_(sum, place): not in C on x86-64: the address would be on the straight line.
 * RINGMARK_COUNTER_(): the clock.
 * RINGMARK_FRAME_FENCE_(): [F1] of ring/src/lib.rs: who sees a word of the frame sees that it was claimed. */
#ifdef __x86_64__

#define RINGMARK_INC_(place) __asm__ volatile("incq %[count]" : [count] "+m"(place) : : "cc", "memory")
#define RINGMARK_REPLACE_(place, found, value)                                                         \
    __asm__ volatile("cmpxchgq %[to], %[at]" : [was] "+&a"(found), [at] "+m"(place) : [to] "r"(value) : "cc", "memory")
#define RINGMARK_ADD_LOADED_(sum, place)                                                                \
    __asm__ volatile("addq %[more], %[to]" : [to] "+r"(sum) : [more] "m"(place) : "cc")
#define RINGMARK_COUNTER_() __builtin_ia32_rdtsc()
#define RINGMARK_FRAME_FENCE_() ((void)0) /* Stores stay in order, and the compiler moves none over the exchange. */

#else

#ifdef __ARM_FEATURE_ATOMICS
/* The result goes into a register: thrown away, it would be `stadd`, which some processors do far from the core. */
#define RINGMARK_INC_(place)                                                                           \
    do {                                                                                               \
        uint64_t ringmark_was_;                                                                        \
        __asm__ volatile("ldadd %[one], %[was], %[at]"                                                 \
                         : [was] "=&r"(ringmark_was_), [at] "+Q"(place) : [one] "r"((uint64_t)1) : "memory"); \
    } while (0)
#define RINGMARK_REPLACE_(place, found, value)                                                         \
    __asm__ volatile("cas %[was], %[to], %[at]"                                                        \
                     : [was] "+&r"(found), [at] "+Q"(place) : [to] "r"((uint64_t)(value)) : "memory")
#else
/* A signal clears the exclusive monitor: the store fails, and it begins again. */
#define RINGMARK_INC_(place)                                                                           \
    do {                                                                                               \
        uint64_t ringmark_was_;                                                                        \
        uint32_t ringmark_failed_;                                                                     \
        __asm__ volatile("1: ldxr %[was], %[at]\n\tadd %[was], %[was], #1\n\t"                        \
                         "stxr %w[failed], %[was], %[at]\n\tcbnz %w[failed], 1b"                       \
                         : [was] "=&r"(ringmark_was_), [failed] "=&r"(ringmark_failed_), [at] "+Q"(place) \
                         : : "memory");                                                                \
    } while (0)
#define RINGMARK_REPLACE_(place, found, value)                                                         \
    do {                                                                                               \
        uint64_t ringmark_was_;                                                                        \
        uint32_t ringmark_failed_;                                                                     \
        __asm__ volatile("1: ldxr %[was], %[at]\n\tcmp %[was], %[expected]\n\tb.ne 2f\n\t"           \
                         "stxr %w[failed], %[to], %[at]\n\tcbnz %w[failed], 1b\n2:"                    \
                         : [was] "=&r"(ringmark_was_), [failed] "=&r"(ringmark_failed_), [at] "+Q"(place) \
                         : [to] "r"((uint64_t)(value)), [expected] "r"((uint64_t)(found)) : "cc", "memory"); \
        (found) = ringmark_was_;                                                                       \
    } while (0)
#endif
#define RINGMARK_ADD_LOADED_(sum, place) ((sum) += RINGMARK_LOAD_(place))
RINGMARK_INLINE_ uint64_t RINGMARK_COUNTER_(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#define RINGMARK_FRAME_FENCE_() __asm__ volatile("dmb ishst" : : : "memory")

#endif

/* The writer's reserve, as in ring/src/protocol/writer.rs. A NULL header: not the common case,
 * and `commit` is `now`: so the straight line keeps one register less. */
RINGMARK_INLINE_ struct ringmark_reservation ringmark_try_(struct ringmark_writer *writer, uint32_t type,
                                                           uint64_t payload_words, uint64_t now) {
    struct ringmark_reservation it = {NULL, NULL, NULL, 0, 0};
    const uint64_t head_words = payload_words < RINGMARK_LONG ? 1 : 2;
    const uint64_t words = head_words + payload_words;
    RINGMARK_INC_(writer->begun); /* What follows is read after it counts: the page does not turn. */
    const uint64_t ticks = now - RINGMARK_LOAD_(writer->tick_base);
    const uintptr_t at = RINGMARK_LOAD_(writer->cursor);
    const uintptr_t next = at + 8 * words;
    if (RINGMARK_LIKELY_(payload_words <= RINGMARK_PAYLOAD_WORDS_MAX && next <= RINGMARK_LOAD_(writer->end) &&
                         ticks <= UINT32_MAX)) {
        uint64_t *const header = (uint64_t *)at;
        if (header == NULL) {
            __builtin_unreachable(); /* It is below the end of a page. */
        }
        uint64_t found = 0;
        RINGMARK_REPLACE_(*header, found, RINGMARK_BUSY | words);
        if (RINGMARK_LIKELY_(found == 0)) {
            RINGMARK_INC_(writer->reservations);
            RINGMARK_STORE_(writer->cursor, next);
            if (payload_words >= RINGMARK_LONG) {
                RINGMARK_STORE_(header[1], payload_words);
            }
            it.writer = writer;
            it.header = header;
            it.payload = header + head_words;
            it.commit = ticks | (uint64_t)type << RINGMARK_TYPE_SHIFT |
                        (payload_words < RINGMARK_LONG ? payload_words : RINGMARK_LONG) << RINGMARK_LENGTH_SHIFT;
            it.cancel = RINGMARK_CANCELLED | words;
            return it;
        }
    }
    it.commit = ticks;
    RINGMARK_ADD_LOADED_(it.commit, writer->tick_base); /* The page has not turned since `begun`. */
    RINGMARK_INC_(writer->ended);
    return it;
}

RINGMARK_INLINE_ struct ringmark_reservation ringmark_reserve_else_(uint32_t type, uint64_t payload_words,
                                                                    uint64_t tick, uint32_t is_at) {
    struct ringmark_reservation slow;
    ringmark_reserve_slow(&slow, type, payload_words, tick, is_at);
    /* Field by field: else clang has the reservations of the straight line in memory, too. */
    const struct ringmark_reservation it = {slow.writer, slow.header, slow.payload, slow.commit, slow.cancel};
    return it;
}

/* Reserves a record of the type with this id, which is not 0: see ringmark_is_on(). */
RINGMARK_INLINE_ struct ringmark_reservation ringmark_reserve(uint32_t type, uint64_t payload_words) {
    struct ringmark_writer *const writer = RINGMARK_LOAD_(ringmark_thread_block.writer);
    if (RINGMARK_LIKELY_(writer != NULL && RINGMARK_LOAD_(writer->clock) == RINGMARK_CLOCK_TSC)) {
        const struct ringmark_reservation it = ringmark_try_(writer, type, payload_words, RINGMARK_COUNTER_());
        if (RINGMARK_LIKELY_(it.header != NULL)) {
            return it;
        }
        return ringmark_reserve_else_(type, payload_words, it.commit, 1); /* The clock is not read twice. */
    }
    return ringmark_reserve_else_(type, payload_words, 0, 0);
}

/* The same for something that happened at a tick that the caller holds: see ringmark_ticks(). */
RINGMARK_INLINE_ struct ringmark_reservation ringmark_reserve_at(uint32_t type, uint64_t payload_words, uint64_t tick) {
    struct ringmark_writer *const writer = RINGMARK_LOAD_(ringmark_thread_block.writer);
    if (RINGMARK_LIKELY_(writer != NULL && RINGMARK_LOAD_(writer->clock) != 0)) { /* 0: the library is asked first. */
        const struct ringmark_reservation it = ringmark_try_(writer, type, payload_words, tick);
        if (RINGMARK_LIKELY_(it.header != NULL)) {
            return it;
        }
    }
    return ringmark_reserve_else_(type, payload_words, tick, 1);
}

RINGMARK_INLINE_ void ringmark_finish_(const struct ringmark_reservation *it, uint64_t header) {
    __atomic_store_n(it->header, header, __ATOMIC_RELEASE);
    RINGMARK_INC_(it->writer->ended);
}

/* Commits a record: one store, after which every reader sees all of it. */
RINGMARK_INLINE_ void ringmark_commit(const struct ringmark_reservation *it) { ringmark_finish_(it, it->commit); }

/* Gives a record up. */
RINGMARK_INLINE_ void ringmark_cancel(const struct ringmark_reservation *it) { ringmark_finish_(it, it->cancel); }

/* Writes a payload word. */
RINGMARK_INLINE_ void ringmark_set_word(const struct ringmark_reservation *it, uint64_t index, uint64_t value) {
    RINGMARK_STORE_(it->payload[index], value);
}

/* The session's clock; 0 without a session. */
RINGMARK_INLINE_ uint64_t ringmark_ticks(void) {
    struct ringmark_writer *const writer = RINGMARK_LOAD_(ringmark_thread_block.writer);
    if (RINGMARK_LIKELY_(writer != NULL && RINGMARK_LOAD_(writer->clock) == RINGMARK_CLOCK_TSC)) {
        return RINGMARK_COUNTER_();
    }
    return ringmark_ticks_slow();
}

/* ---- Open spans ------------------------------------------------------------------------------ */

/* Claims the frame at the writer's `top`, as in ring/src/protocol/open_spans.rs: one instruction that no
 * handler splits, before the frame is filled. NULL: not the common case. */
RINGMARK_INLINE_ uint64_t *ringmark_claim_top_(struct ringmark_writer *writer) {
    uint64_t *const top = writer != NULL ? RINGMARK_LOAD_(writer->top) : NULL;
    if (RINGMARK_LIKELY_((uintptr_t)top % RINGMARK_STACK_BYTES != 0)) {
        const uint64_t is_free = RINGMARK_LOAD_(*top);
        uint64_t found = is_free;
        if (RINGMARK_LIKELY_(is_free <= UINT32_MAX)) {
            RINGMARK_REPLACE_(*top, found, RINGMARK_FRAME_CLAIMED | (uint32_t)(is_free + 1));
            if (RINGMARK_LIKELY_(found == is_free)) {
                RINGMARK_STORE_(writer->top, top + RINGMARK_FRAME_WORDS);
                return top;
            }
        }
    }
    return NULL;
}

/* Begins a span and claims its frame. */
RINGMARK_INLINE_ struct ringmark_span ringmark_claim_(uint32_t id, uint64_t head) {
    struct ringmark_span it = {id, 0, NULL, 0};
    if (id == 0) {
        return it;
    }
    struct ringmark_writer *writer = RINGMARK_LOAD_(ringmark_thread_block.writer);
    if (!RINGMARK_LIKELY_(writer != NULL)) {
        writer = ringmark_attach_slow();
    }
    it.start = ringmark_ticks();
    it.frame = ringmark_claim_top_(writer);
    if (!RINGMARK_LIKELY_(it.frame != NULL)) {
        it.frame = ringmark_claim_slow();
        if ((uintptr_t)it.frame % RINGMARK_STACK_BYTES == 0) {
            return it; /* Only counted, or no stack. */
        }
    }
    it.head = head | (uint64_t)id << RINGMARK_TYPE_SHIFT | (uint32_t)RINGMARK_LOAD_(*it.frame);
    RINGMARK_FRAME_FENCE_();
    return it;
}

/* Whether the span has a frame to fill. */
RINGMARK_INLINE_ bool ringmark_has_frame_(const struct ringmark_span *it) { return it->head != 0; }

/* Where its arguments go: as in a payload, with the tick where a record has the duration. */
RINGMARK_INLINE_ unsigned char *ringmark_frame_(const struct ringmark_span *it) {
    return (unsigned char *)(it->frame + 1);
}

/* Shows the span to readers: the head last. */
RINGMARK_INLINE_ void ringmark_show_(struct ringmark_span *it, uint64_t words) {
    it->head |= (words < RINGMARK_FRAME_KEEPS ? words : RINGMARK_FRAME_KEEPS) << RINGMARK_LENGTH_SHIFT;
    RINGMARK_STORE_(it->frame[1], it->start);
    __atomic_store_n(it->frame, it->head, __ATOMIC_RELEASE);
}

/* Takes the span off the stack again, after its record. */
RINGMARK_INLINE_ void ringmark_pop_(const struct ringmark_span *it, uint32_t is_lexical) {
    uint64_t *const frame = it->frame;
    if (frame == NULL) {
        return;
    }
    struct ringmark_writer *const writer = RINGMARK_LOAD_(ringmark_thread_block.writer);
    if (RINGMARK_LIKELY_(writer != NULL && RINGMARK_LOAD_(writer->top) == frame + RINGMARK_FRAME_WORDS &&
                         RINGMARK_LOAD_(*frame) == it->head)) {
        __atomic_store_n(frame, (uint32_t)it->head, __ATOMIC_RELEASE);
        RINGMARK_STORE_(writer->top, frame);
        return;
    }
    const struct ringmark_span copy = *it; /* So that the span itself need not be in memory. */
    ringmark_pop_slow(&copy, is_lexical);
}

#include "ringmark_events.h"

#endif
