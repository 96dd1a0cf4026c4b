/* Event, span and counter types, and the macros that record them. Included by ringmark.h. */
#ifndef RINGMARK_EVENTS_H
#define RINGMARK_EVENTS_H

/* Target of this file's types in filters, as a module is in Rust. */
#ifndef RINGMARK_TARGET
#define RINGMARK_TARGET "c"
#endif

/* Bytes that are an argument: copied into the record. */
struct ringmark_bytes {
    const void *at;
    size_t bytes;
};

/* ---- Kinds: argument, place in the payload, bytes behind the fixed part ----------------------- */

#define RINGMARK_PLAIN_(kind, type)                                                                    \
    typedef type ringmark_arg_##kind##_;                                                               \
    typedef type ringmark_place_##kind##_;                                                             \
    RINGMARK_INLINE_ uint64_t ringmark_length_##kind##_(type value) {                                  \
        (void)value;                                                                                   \
        return 0;                                                                                      \
    }                                                                                                  \
    RINGMARK_INLINE_ void ringmark_put_##kind##_(unsigned char *payload, size_t offset, type value,    \
                                                 uint64_t length, uint64_t *behind) {                  \
        (void)length;                                                                                  \
        (void)behind;                                                                                  \
        __atomic_store((type *)(void *)(payload + offset), &value, __ATOMIC_RELAXED);                  \
    }                                                                                                  \
    RINGMARK_INLINE_ void ringmark_keep_##kind##_(unsigned char *payload, size_t offset, type value,   \
                                                  uint64_t length, uint64_t *behind) {                 \
        if (offset + sizeof(type) <= RINGMARK_FRAME_END_) {                                            \
            ringmark_put_##kind##_(payload, offset, value, length, behind);                            \
        }                                                                                              \
    }
/* Where a frame ends, counted as a payload is: a tick, then what it keeps. */
#define RINGMARK_FRAME_END_ (8 + 8 * RINGMARK_FRAME_KEEPS)
RINGMARK_PLAIN_(u8, uint8_t)
RINGMARK_PLAIN_(u16, uint16_t)
RINGMARK_PLAIN_(u32, uint32_t)
RINGMARK_PLAIN_(u64, uint64_t)
RINGMARK_PLAIN_(i8, int8_t)
RINGMARK_PLAIN_(i16, int16_t)
RINGMARK_PLAIN_(i32, int32_t)
RINGMARK_PLAIN_(i64, int64_t)
RINGMARK_PLAIN_(f32, float)
RINGMARK_PLAIN_(f64, double)
#ifdef bool /* A macro in C: what a field's kind has become when we see it. */
RINGMARK_PLAIN_(_Bool, _Bool)
#define RINGMARK_KIND__Bool RINGMARK_KIND_BOOL
#else
RINGMARK_PLAIN_(bool, bool)
#endif

/* The page was zeroed when it was opened: what is not written is padding. */
RINGMARK_INLINE_ void ringmark_put_behind_(unsigned char *payload, size_t offset, const void *from, uint64_t length,
                                           uint64_t *behind) {
    const uint64_t place = *behind | length << 32;
    RINGMARK_STORE_(*(uint64_t *)(void *)(payload + offset), place);
    if (length != 0) {
        __builtin_memcpy(payload + *behind, from, length);
    }
    *behind += (length + 7) / 8 * 8;
}

/* The same in a frame: what goes beyond it is left out, and the place says so. */
RINGMARK_INLINE_ void ringmark_keep_behind_(unsigned char *payload, size_t offset, const void *from, uint64_t length,
                                            uint64_t *behind) {
    if (offset + 8 <= RINGMARK_FRAME_END_) {
        const uint64_t place = *behind | length << 32;
        RINGMARK_STORE_(*(uint64_t *)(void *)(payload + offset), place);
    }
    if (length != 0 && *behind < RINGMARK_FRAME_END_) {
        const uint64_t room = RINGMARK_FRAME_END_ - *behind;
        __builtin_memcpy(payload + *behind, from, length < room ? length : room);
    }
    *behind += (length + 7) / 8 * 8;
}

typedef const char *ringmark_arg_str_;
typedef uint64_t ringmark_place_str_;
RINGMARK_INLINE_ uint64_t ringmark_length_str_(const char *value) {
    return value == NULL ? 0 : __builtin_strlen(value);
}
RINGMARK_INLINE_ void ringmark_put_str_(unsigned char *payload, size_t offset, const char *value, uint64_t length,
                                        uint64_t *behind) {
    ringmark_put_behind_(payload, offset, value, length, behind);
}
RINGMARK_INLINE_ void ringmark_keep_str_(unsigned char *payload, size_t offset, const char *value, uint64_t length,
                                         uint64_t *behind) {
    ringmark_keep_behind_(payload, offset, value, length, behind);
}

typedef struct ringmark_bytes ringmark_arg_bytes_;
typedef uint64_t ringmark_place_bytes_;
RINGMARK_INLINE_ uint64_t ringmark_length_bytes_(struct ringmark_bytes value) {
    return value.at == NULL ? 0 : value.bytes;
}
RINGMARK_INLINE_ void ringmark_put_bytes_(unsigned char *payload, size_t offset, struct ringmark_bytes value,
                                          uint64_t length, uint64_t *behind) {
    ringmark_put_behind_(payload, offset, value.at, length, behind);
}
RINGMARK_INLINE_ void ringmark_keep_bytes_(unsigned char *payload, size_t offset, struct ringmark_bytes value,
                                           uint64_t length, uint64_t *behind) {
    ringmark_keep_behind_(payload, offset, value.at, length, behind);
}

#define RINGMARK_KIND_u8 RINGMARK_KIND_U8
#define RINGMARK_KIND_u16 RINGMARK_KIND_U16
#define RINGMARK_KIND_u32 RINGMARK_KIND_U32
#define RINGMARK_KIND_u64 RINGMARK_KIND_U64
#define RINGMARK_KIND_i8 RINGMARK_KIND_I8
#define RINGMARK_KIND_i16 RINGMARK_KIND_I16
#define RINGMARK_KIND_i32 RINGMARK_KIND_I32
#define RINGMARK_KIND_i64 RINGMARK_KIND_I64
#define RINGMARK_KIND_f32 RINGMARK_KIND_F32
#define RINGMARK_KIND_f64 RINGMARK_KIND_F64
#define RINGMARK_KIND_bool RINGMARK_KIND_BOOL
#define RINGMARK_KIND_str RINGMARK_KIND_STR
#define RINGMARK_KIND_bytes RINGMARK_KIND_BYTES

/* ---- Lists: a name, then up to 16 fields ------------------------------------------------------- */

#define RINGMARK_CAT_(a, b) RINGMARK_CAT_I_(a, b)
#define RINGMARK_CAT_I_(a, b) a##b
#define RINGMARK_FIRST_(...) RINGMARK_FIRST_I_(__VA_ARGS__, 0)
#define RINGMARK_FIRST_I_(first, ...) first
#define RINGMARK_CALL_(f, ...) f(__VA_ARGS__)
#define RINGMARK_BARE_(...) __VA_ARGS__
#define RINGMARK_NTH_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, n, ...) n
#define RINGMARK_COUNT_(...) RINGMARK_NTH_(__VA_ARGS__, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
/* 1 for one argument, N for more. */
#define RINGMARK_MANY_(...) RINGMARK_NTH_(__VA_ARGS__, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, N, 1, 0)
/* f(x, field) for each field. */
#define RINGMARK_EACH_(f, x, ...) RINGMARK_CAT_(RINGMARK_EACH_, RINGMARK_COUNT_(__VA_ARGS__))(f, x, __VA_ARGS__)
#define RINGMARK_EACH_1(f, x, name)
#define RINGMARK_EACH_2(f, x, name, a) f(x, a)
#define RINGMARK_EACH_3(f, x, name, a, ...) f(x, a) RINGMARK_EACH_2(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_4(f, x, name, a, ...) f(x, a) RINGMARK_EACH_3(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_5(f, x, name, a, ...) f(x, a) RINGMARK_EACH_4(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_6(f, x, name, a, ...) f(x, a) RINGMARK_EACH_5(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_7(f, x, name, a, ...) f(x, a) RINGMARK_EACH_6(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_8(f, x, name, a, ...) f(x, a) RINGMARK_EACH_7(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_9(f, x, name, a, ...) f(x, a) RINGMARK_EACH_8(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_10(f, x, name, a, ...) f(x, a) RINGMARK_EACH_9(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_11(f, x, name, a, ...) f(x, a) RINGMARK_EACH_10(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_12(f, x, name, a, ...) f(x, a) RINGMARK_EACH_11(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_13(f, x, name, a, ...) f(x, a) RINGMARK_EACH_12(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_14(f, x, name, a, ...) f(x, a) RINGMARK_EACH_13(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_15(f, x, name, a, ...) f(x, a) RINGMARK_EACH_14(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_16(f, x, name, a, ...) f(x, a) RINGMARK_EACH_15(f, x, name, __VA_ARGS__)
#define RINGMARK_EACH_17(f, x, name, a, ...) f(x, a) RINGMARK_EACH_16(f, x, name, __VA_ARGS__)

#define RINGMARK_MEMBER_(x, field) RINGMARK_CALL_(RINGMARK_MEMBER_I_, RINGMARK_BARE_ field)
#define RINGMARK_MEMBER_I_(kind, name) ringmark_place_##kind##_ name;
#define RINGMARK_KEPT_(x, field) RINGMARK_CALL_(RINGMARK_KEPT_I_, RINGMARK_BARE_ field)
#define RINGMARK_KEPT_I_(kind, name) ringmark_arg_##kind##_ name;
#define RINGMARK_KEEP_(x, field) RINGMARK_CALL_(RINGMARK_KEEP_I_, RINGMARK_BARE_ field)
#define RINGMARK_KEEP_I_(kind, name) ringmark_it_.name = name;
#define RINGMARK_PARAMETER_(x, field) RINGMARK_CALL_(RINGMARK_PARAMETER_I_, RINGMARK_BARE_ field)
#define RINGMARK_PARAMETER_I_(kind, name) , ringmark_arg_##kind##_ name
#define RINGMARK_GIVEN_(x, field) RINGMARK_CALL_(RINGMARK_GIVEN_I_, RINGMARK_BARE_ field)
#define RINGMARK_GIVEN_I_(kind, name) , ringmark_it_->name
#define RINGMARK_LENGTH_(x, field) RINGMARK_CALL_(RINGMARK_LENGTH_I_, RINGMARK_BARE_ field)
#define RINGMARK_LENGTH_I_(kind, name) const uint64_t ringmark_length_of_##name = ringmark_length_##kind##_(name);
#define RINGMARK_WORDS_(x, field) RINGMARK_CALL_(RINGMARK_WORDS_I_, RINGMARK_BARE_ field)
#define RINGMARK_WORDS_I_(kind, name) +(ringmark_length_of_##name + 7) / 8
#define RINGMARK_PUT_(ident, field) RINGMARK_CALL_(RINGMARK_PUT_I_, ident, RINGMARK_BARE_ field)
#define RINGMARK_PUT_I_(ident, kind, name)                                                             \
    ringmark_put_##kind##_(ringmark_payload_, RINGMARK_OFFSET_(ident, name), name,                     \
                           ringmark_length_of_##name, &ringmark_behind_);
#define RINGMARK_SHOW_(ident, field) RINGMARK_CALL_(RINGMARK_SHOW_I_, ident, RINGMARK_BARE_ field)
#define RINGMARK_SHOW_I_(ident, kind, name)                                                            \
    ringmark_keep_##kind##_(ringmark_payload_, RINGMARK_OFFSET_(ident, name), name,                    \
                            ringmark_length_of_##name, &ringmark_behind_);
#define RINGMARK_FIELD_(ident, field) RINGMARK_CALL_(RINGMARK_FIELD_I_, ident, 0, RINGMARK_BARE_ field)
#define RINGMARK_VALUE_(ident, field)                                                                  \
    RINGMARK_CALL_(RINGMARK_FIELD_I_, ident, RINGMARK_SEMANTIC_COUNTER, RINGMARK_BARE_ field)
#define RINGMARK_FIELD_I_(ident, semantic, kind, name)                                                 \
    {#name, RINGMARK_OFFSET_(ident, name), RINGMARK_KIND_##kind, semantic, 0},
#define RINGMARK_OFFSET_(ident, name)                                                                  \
    ((uint32_t)offsetof(struct ringmark_layout_##ident, name) - 8 + RINGMARK_LEAD_(ident))
/* Bytes in front of the fields: 8 for a span, its duration. */
#define RINGMARK_LEAD_(ident) ((uint32_t)sizeof(ringmark_lead_##ident) - 1)
#define RINGMARK_FIXED_BYTES_(ident)                                                                   \
    ((uint32_t)sizeof(struct ringmark_layout_##ident) - 8 + RINGMARK_LEAD_(ident))

/* ---- Types ------------------------------------------------------------------------------------ */

#define RINGMARK_SECTION_ __attribute__((section("ringmark_types"), used RINGMARK_RETAIN_))
#if defined(__has_attribute)
#if __has_attribute(retain)
#define RINGMARK_RETAIN_ , retain
#endif
#endif
#ifndef RINGMARK_RETAIN_
#define RINGMARK_RETAIN_
#endif

#define RINGMARK_DEFINE_(ident, shape_, level_, category_, lead_, first_, field_, ...)                 \
    typedef char ringmark_lead_##ident[(lead_) + 1];                                                   \
    struct ringmark_layout_##ident {                                                                   \
        uint64_t ringmark_lead_;                                                                       \
        RINGMARK_EACH_(RINGMARK_MEMBER_, ident, __VA_ARGS__)                                           \
    };                                                                                                 \
    static const struct ringmark_field ringmark_fields_##ident[] = {                                   \
        first_ RINGMARK_EACH_(field_, ident, __VA_ARGS__){NULL, 0, 0, 0, 0}};                          \
    static struct ringmark_type ringmark_type_##ident = {                                              \
        0,                                                                                             \
        0,                                                                                             \
        RINGMARK_FIRST_(__VA_ARGS__),                                                                  \
        RINGMARK_TARGET,                                                                               \
        category_,                                                                                     \
        __FILE__,                                                                                      \
        ringmark_fields_##ident,                                                                       \
        (uint32_t)(sizeof(ringmark_fields_##ident) / sizeof(struct ringmark_field)) - 1,               \
        __LINE__,                                                                                      \
        RINGMARK_LEVEL_##level_,                                                                       \
        RINGMARK_SHAPE_##shape_};                                                                      \
    RINGMARK_SECTION_ static struct ringmark_type *ringmark_listed_##ident = &ringmark_type_##ident;   \
    RINGMARK_INLINE_ void ringmark_record_##ident(                                                     \
        uint32_t ringmark_id_, uint64_t ringmark_start_ RINGMARK_EACH_(RINGMARK_PARAMETER_, ident, __VA_ARGS__)) { \
        RINGMARK_EACH_(RINGMARK_LENGTH_, ident, __VA_ARGS__)                                           \
        const uint64_t ringmark_words_ =                                                               \
            RINGMARK_FIXED_BYTES_(ident) / 8 RINGMARK_EACH_(RINGMARK_WORDS_, ident, __VA_ARGS__);      \
        const uint64_t ringmark_end_ = (lead_) != 0 ? ringmark_ticks() : 0;                            \
        const struct ringmark_reservation ringmark_it_ =                                               \
            (lead_) != 0 ? ringmark_reserve_at(ringmark_id_, ringmark_words_, ringmark_end_)           \
                         : ringmark_reserve(ringmark_id_, ringmark_words_);                            \
        if (RINGMARK_LIKELY_(ringmark_it_.header != NULL)) {                                           \
            unsigned char *const ringmark_payload_ = (unsigned char *)ringmark_it_.payload;            \
            uint64_t ringmark_behind_ = RINGMARK_FIXED_BYTES_(ident);                                  \
            (void)ringmark_payload_;                                                                   \
            (void)ringmark_behind_;                                                                    \
            if ((lead_) != 0) {                                                                        \
                ringmark_set_word(&ringmark_it_, 0, ringmark_end_ - ringmark_start_);                  \
            }                                                                                          \
            RINGMARK_EACH_(RINGMARK_PUT_, ident, __VA_ARGS__)                                          \
            ringmark_commit(&ringmark_it_);                                                            \
        }                                                                                              \
    }

/* An event: RINGMARK_EVENT(ident, "name", (kind, field), ...); at file scope. */
#define RINGMARK_EVENT(ident, ...) RINGMARK_EVENT_WITH(ident, INFO, "", __VA_ARGS__)
/* The same with a level (ERROR, WARN, INFO, DEBUG or TRACE) and a category. */
#define RINGMARK_EVENT_WITH(ident, level, category, ...)                                               \
    RINGMARK_DEFINE_(ident, EVENT, level, category, 0, , RINGMARK_FIELD_, __VA_ARGS__)                 \
    RINGMARK_ASSERT_(1, "")
/* A counter: RINGMARK_COUNTER(ident, "name", kind); recorded by ringmark_event(ident, value). */
#define RINGMARK_COUNTER(ident, name, kind)                                                            \
    RINGMARK_DEFINE_(ident, COUNTER, INFO, "", 0, , RINGMARK_VALUE_, name, (kind, value))              \
    RINGMARK_ASSERT_(1, "")
/* A span: RINGMARK_SPAN(ident, "name", (kind, field), ...). */
#define RINGMARK_SPAN(ident, ...) RINGMARK_SPAN_WITH(ident, INFO, "", __VA_ARGS__)
#define RINGMARK_SPAN_WITH(ident, level, category, ...)                                                \
    RINGMARK_DEFINE_(ident, SPAN, level, category, 8, RINGMARK_DURATION_, RINGMARK_FIELD_, __VA_ARGS__) \
    struct ringmark_scope_##ident {                                                                    \
        struct ringmark_span ringmark_span_;                                                           \
        RINGMARK_EACH_(RINGMARK_KEPT_, ident, __VA_ARGS__)                                             \
    };                                                                                                 \
    RINGMARK_INLINE_ struct ringmark_scope_##ident ringmark_enter_##ident(                             \
        uint32_t ringmark_id_ RINGMARK_EACH_(RINGMARK_PARAMETER_, ident, __VA_ARGS__)) {               \
        struct ringmark_scope_##ident ringmark_it_;                                                    \
        RINGMARK_EACH_(RINGMARK_KEEP_, ident, __VA_ARGS__)                                             \
        RINGMARK_EACH_(RINGMARK_LENGTH_, ident, __VA_ARGS__)                                           \
        ringmark_it_.ringmark_span_ = ringmark_claim_(ringmark_id_, RINGMARK_FRAME_HEAD | RINGMARK_FRAME_LEXICAL); \
        if (RINGMARK_LIKELY_(ringmark_has_frame_(&ringmark_it_.ringmark_span_))) {                     \
            unsigned char *const ringmark_payload_ = ringmark_frame_(&ringmark_it_.ringmark_span_);    \
            uint64_t ringmark_behind_ = RINGMARK_FIXED_BYTES_(ident);                                  \
            (void)ringmark_payload_;                                                                   \
            (void)ringmark_behind_;                                                                    \
            RINGMARK_EACH_(RINGMARK_SHOW_, ident, __VA_ARGS__)                                         \
            ringmark_show_(&ringmark_it_.ringmark_span_,                                               \
                           RINGMARK_FIXED_BYTES_(ident) / 8 -                                          \
                               1 RINGMARK_EACH_(RINGMARK_WORDS_, ident, __VA_ARGS__));                 \
        }                                                                                              \
        return ringmark_it_;                                                                           \
    }                                                                                                  \
    RINGMARK_INLINE_ struct ringmark_scope_##ident ringmark_stay_##ident(void) {                       \
        struct ringmark_scope_##ident ringmark_it_;                                                    \
        __builtin_memset(&ringmark_it_, 0, sizeof ringmark_it_);                                       \
        return ringmark_it_;                                                                           \
    }                                                                                                  \
    RINGMARK_INLINE_ void ringmark_leave_##ident(const struct ringmark_scope_##ident *ringmark_it_) {  \
        if (ringmark_it_->ringmark_span_.id != 0) {                                                    \
            ringmark_record_##ident(ringmark_it_->ringmark_span_.id, ringmark_it_->ringmark_span_.start \
                                        RINGMARK_EACH_(RINGMARK_GIVEN_, ident, __VA_ARGS__));          \
            ringmark_pop_(&ringmark_it_->ringmark_span_, 1);                                           \
        }                                                                                              \
    }                                                                                                  \
    RINGMARK_ASSERT_(1, "")
#define RINGMARK_DURATION_ {"duration", 0, RINGMARK_KIND_U64, RINGMARK_SEMANTIC_DURATION, 0},

RINGMARK_INLINE_ struct ringmark_span ringmark_begin_(uint32_t id) {
    struct ringmark_span it = ringmark_claim_(id, RINGMARK_FRAME_HEAD);
    if (RINGMARK_LIKELY_(ringmark_has_frame_(&it))) {
        ringmark_show_(&it, 0); /* Its arguments come with its end. */
    }
    return it;
}

/* ---- What programs say ------------------------------------------------------------------------- */

/* The type's id if it is on, else 0. */
#define ringmark_is_on(ident) RINGMARK_LOAD_(ringmark_type_##ident.enabled)

/* Records an event, or a counter's value: ringmark_event(ident, values...). */
#define ringmark_event(...) RINGMARK_CAT_(RINGMARK_EMIT_, RINGMARK_MANY_(__VA_ARGS__))(__VA_ARGS__)
#define RINGMARK_EMIT_1(ident)                                                                         \
    do {                                                                                               \
        const uint32_t ringmark_id_ = ringmark_is_on(ident);                                           \
        if (RINGMARK_LIKELY_(ringmark_id_ != 0)) {                                                         \
            ringmark_record_##ident(ringmark_id_, 0);                                                  \
        }                                                                                              \
    } while (0)
#define RINGMARK_EMIT_N(ident, ...)                                                                    \
    do {                                                                                               \
        const uint32_t ringmark_id_ = ringmark_is_on(ident);                                           \
        if (RINGMARK_LIKELY_(ringmark_id_ != 0)) {                                                         \
            ringmark_record_##ident(ringmark_id_, 0, __VA_ARGS__);                                     \
        }                                                                                              \
    } while (0)

/* Begins a span: struct ringmark_span span = ringmark_begin(ident). It needs an end. */
#define ringmark_begin(ident) ringmark_begin_(ringmark_is_on(ident))
/* Ends and records it: ringmark_end(ident, span, values...). */
#define ringmark_end(ident, ...) RINGMARK_CAT_(RINGMARK_END_, RINGMARK_MANY_(__VA_ARGS__))(ident, __VA_ARGS__)
#define RINGMARK_END_1(ident, span)                                                                    \
    do {                                                                                               \
        if ((span).id != 0) {                                                                          \
            ringmark_record_##ident((span).id, (span).start);                                          \
            ringmark_pop_(&(span), 0);                                                                 \
        }                                                                                              \
    } while (0)
#define RINGMARK_END_N(ident, span, ...)                                                               \
    do {                                                                                               \
        if ((span).id != 0) {                                                                          \
            ringmark_record_##ident((span).id, (span).start, __VA_ARGS__);                             \
            ringmark_pop_(&(span), 0);                                                                 \
        }                                                                                              \
    } while (0)
/* A span to the end of the block, however that is left (in C++ also by an exception):
 * RINGMARK_SCOPE(ident, values...); they are taken at its beginning. */
#define RINGMARK_SCOPE(...) RINGMARK_CAT_(RINGMARK_SCOPE_, RINGMARK_MANY_(__VA_ARGS__))(__VA_ARGS__)
#define RINGMARK_SCOPE_1(ident)                                                                        \
    RINGMARK_GUARD_(ident) = ringmark_is_on(ident) != 0 ? ringmark_enter_##ident(ringmark_is_on(ident)) \
                                                        : ringmark_stay_##ident()
#define RINGMARK_SCOPE_N(ident, ...)                                                                   \
    RINGMARK_GUARD_(ident) = ringmark_is_on(ident) != 0                                                \
                                 ? ringmark_enter_##ident(ringmark_is_on(ident), __VA_ARGS__)          \
                                 : ringmark_stay_##ident()
#define RINGMARK_GUARD_(ident)                                                                         \
    const struct ringmark_scope_##ident RINGMARK_CAT_(ringmark_guard_, __LINE__)                    \
        __attribute__((cleanup(ringmark_leave_##ident), unused))

/* ---- Registration ----------------------------------------------------------------------------- */

#ifdef __cplusplus
extern "C" {
#endif
extern struct ringmark_type *__start_ringmark_types[] __attribute__((visibility("hidden")));
extern struct ringmark_type *__stop_ringmark_types[] __attribute__((visibility("hidden")));
#ifdef __cplusplus
}
#endif

/* The section is there also where no type is. */
RINGMARK_SECTION_ static struct ringmark_type *ringmark_listed_none_ = NULL;

/* The library takes each section once. */
__attribute__((constructor(101))) static void ringmark_register_types_(void) {
    ringmark_register_types(RINGMARK_LAYOUT, &ringmark_thread_block, __start_ringmark_types,
                            __stop_ringmark_types);
}

#endif
