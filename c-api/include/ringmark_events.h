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
    typedef type ringmark_##kind##_arg;                                                                \
    typedef type ringmark_##kind##_place;                                                              \
    typedef char ringmark_##kind##_room;                                                               \
    RINGMARK_INLINE_ uint64_t ringmark_##kind##_length(type value) {                                   \
        (void)value;                                                                                   \
        return 0;                                                                                      \
    }                                                                                                  \
    RINGMARK_INLINE_ type ringmark_##kind##_copy(char *room, type value) {                             \
        (void)room;                                                                                    \
        return value;                                                                                  \
    }                                                                                                  \
    RINGMARK_INLINE_ void ringmark_##kind##_put(unsigned char *payload, size_t offset, type value,     \
                                                uint64_t length, uint64_t *behind) {                   \
        (void)length;                                                                                  \
        (void)behind;                                                                                  \
        __atomic_store((type *)(void *)(payload + offset), &value, __ATOMIC_RELAXED);                  \
    }                                                                                                  \
    RINGMARK_INLINE_ void ringmark_##kind##_show(unsigned char *payload, size_t offset, type value,    \
                                                 uint64_t length, uint64_t *behind) {                  \
        if (offset + sizeof(type) <= RINGMARK_FRAME_END_) {                                            \
            ringmark_##kind##_put(payload, offset, value, length, behind);                             \
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
#ifdef __cplusplus
RINGMARK_PLAIN_(bool, bool)
#else
RINGMARK_PLAIN_(bool, _Bool)
RINGMARK_PLAIN_(_Bool, _Bool) /* What `bool` has become behind a macro of the program's. */
#endif

/* The bytes that a record holds at most. A longer value makes it too large: it is lost, and counted. */
#define RINGMARK_LENGTH_MAX_ (8 * (uint64_t)RINGMARK_PAYLOAD_WORDS_MAX)

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
RINGMARK_INLINE_ void ringmark_show_behind_(unsigned char *payload, size_t offset, const void *from, uint64_t length,
                                            uint64_t *behind) {
    if (offset + 8 <= RINGMARK_FRAME_END_) {
        const uint64_t place = *behind | length << 32;
        RINGMARK_STORE_(*(uint64_t *)(void *)(payload + offset), place);
    }
    if (length != 0 && length <= RINGMARK_LENGTH_MAX_ && *behind < RINGMARK_FRAME_END_) {
        const uint64_t room = RINGMARK_FRAME_END_ - *behind;
        __builtin_memcpy(payload + *behind, from, length < room ? length : room);
    }
    *behind += (length + 7) / 8 * 8;
}

/* What a scope keeps of a text, or of bytes, until its end. A longer value ends in "\xe2\x80\xa6", the
 * character "...", with which it has RINGMARK_SCOPE_KEEPS bytes or a few less. */
#define RINGMARK_SCOPE_KEEPS 512
typedef struct {
    char bytes[RINGMARK_SCOPE_KEEPS + 1];
} ringmark_room_;

/* Copies a value into its room. Returns its length there. */
static inline __attribute__((__unused__)) uint64_t ringmark_copy_(ringmark_room_ *room, const void *from,
                                                                  uint64_t length) {
    static const char cut[] = "\xe2\x80\xa6";
    uint64_t kept = length;
    if (length > RINGMARK_SCOPE_KEEPS) {
        const unsigned char *const bytes = (const unsigned char *)from;
        kept = RINGMARK_SCOPE_KEEPS - (sizeof cut - 1);
        for (int back = 0; back < 3 && (bytes[kept] & 0xc0) == 0x80; ++back) {
            --kept; /* No character is split. */
        }
        __builtin_memcpy(room->bytes + kept, cut, sizeof cut - 1);
    }
    if (kept != 0) {
        __builtin_memcpy(room->bytes, from, kept);
    }
    kept += kept < length ? sizeof cut - 1 : 0;
    room->bytes[kept] = 0;
    return kept;
}

typedef const char *ringmark_str_arg;
typedef uint64_t ringmark_str_place;
typedef ringmark_room_ ringmark_str_room;
RINGMARK_INLINE_ uint64_t ringmark_str_length(const char *value) {
    return value == NULL ? 0 : __builtin_strlen(value);
}
RINGMARK_INLINE_ const char *ringmark_str_copy(ringmark_room_ *room, const char *value) {
    if (value == NULL) {
        return NULL;
    }
    (void)ringmark_copy_(room, value, __builtin_strlen(value));
    return room->bytes;
}
RINGMARK_INLINE_ void ringmark_str_put(unsigned char *payload, size_t offset, const char *value, uint64_t length,
                                       uint64_t *behind) {
    ringmark_put_behind_(payload, offset, value, length, behind);
}
RINGMARK_INLINE_ void ringmark_str_show(unsigned char *payload, size_t offset, const char *value, uint64_t length,
                                        uint64_t *behind) {
    ringmark_show_behind_(payload, offset, value, length, behind);
}

typedef struct ringmark_bytes ringmark_bytes_arg;
typedef uint64_t ringmark_bytes_place;
typedef ringmark_room_ ringmark_bytes_room;
RINGMARK_INLINE_ uint64_t ringmark_bytes_length(struct ringmark_bytes value) {
    if (value.at == NULL) {
        return 0;
    }
    return value.bytes <= RINGMARK_LENGTH_MAX_ ? value.bytes : RINGMARK_LENGTH_MAX_ + 1;
}
RINGMARK_INLINE_ struct ringmark_bytes ringmark_bytes_copy(ringmark_room_ *room, struct ringmark_bytes value) {
    if (value.at != NULL && value.bytes <= RINGMARK_LENGTH_MAX_) {
        value.bytes = ringmark_copy_(room, value.at, value.bytes);
        value.at = room->bytes;
    }
    return value;
}
RINGMARK_INLINE_ void ringmark_bytes_put(unsigned char *payload, size_t offset, struct ringmark_bytes value,
                                         uint64_t length, uint64_t *behind) {
    ringmark_put_behind_(payload, offset, value.at, length, behind);
}
RINGMARK_INLINE_ void ringmark_bytes_show(unsigned char *payload, size_t offset, struct ringmark_bytes value,
                                          uint64_t length, uint64_t *behind) {
    ringmark_show_behind_(payload, offset, value.at, length, behind);
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
#define RINGMARK_KIND__Bool RINGMARK_KIND_BOOL
#define RINGMARK_KIND_str RINGMARK_KIND_STR
#define RINGMARK_KIND_bytes RINGMARK_KIND_BYTES

/* ---- Lists: a name, then up to 16 fields ------------------------------------------------------- */

/* A program may have macros that are called as its types, fields, kinds or levels are. So what it writes is
 * pasted to a name of ours before anything is expanded: `ident` becomes ringmark_ident, and (u32, rows) becomes
 * (ringmark_u32, RINGMARK_KIND_u32, "rows", ringmark_f_rows). What stands next to ## is not expanded: `e` is
 * empty, and there for that. */
#define RINGMARK_CAT_(a, b) RINGMARK_CAT_I_(a, b)
#define RINGMARK_CAT_I_(a, b) a##b
#define RINGMARK_FIRST_(...) RINGMARK_FIRST_I_(__VA_ARGS__, 0)
#define RINGMARK_FIRST_I_(first, ...) first
#define RINGMARK_CALL_(f, ...) f(__VA_ARGS__)
#define RINGMARK_BARE_(...) __VA_ARGS__
#define RINGMARK_NTH_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, \
                      a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, n, ...)              \
    n
/* 1 for a name alone, 18 for one with more than 16 fields. */
#define RINGMARK_COUNT_(...)                                                                           \
    RINGMARK_NTH_(__VA_ARGS__, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 18, 17, 16, 15, 14, 13, 12, \
                  11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
/* 1 for one argument, 2 for more. */
#define RINGMARK_MANY_(...)                                                                            \
    RINGMARK_NTH_(__VA_ARGS__, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, \
                  2, 2, 2, 1, 0)
/* f(e, x, field) for each field. */
#define RINGMARK_EACH_(f, x, ...) RINGMARK_EACH_OF_(f, x, , __VA_ARGS__)
#define RINGMARK_EACH_OF_(f, x, e, ...)                                                                \
    RINGMARK_CAT_(RINGMARK_EACH_, RINGMARK_COUNT_(__VA_ARGS__))(f, x, e, e##__VA_ARGS__)
#define RINGMARK_EACH_1(f, x, e, name)
#define RINGMARK_EACH_2(f, x, e, name, a) f(e, x, e##a)
#define RINGMARK_EACH_3(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_2(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_4(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_3(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_5(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_4(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_6(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_5(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_7(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_6(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_8(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_7(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_9(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_8(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_10(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_9(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_11(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_10(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_12(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_11(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_13(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_12(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_14(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_13(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_15(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_14(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_16(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_15(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_17(f, x, e, name, a, ...) f(e, x, e##a) RINGMARK_EACH_16(f, x, e, name, e##__VA_ARGS__)
#define RINGMARK_EACH_18(f, x, e, name, ...)
/* The name, and the fields with kinds of ours. */
#define RINGMARK_OURS_(e, ...)                                                                         \
    RINGMARK_FIRST_(__VA_ARGS__) RINGMARK_EACH_OF_(RINGMARK_OUR_FIELD_, , e, e##__VA_ARGS__)
#define RINGMARK_OUR_FIELD_(e, x, field) , RINGMARK_OUR_FIELD_I_ e##field
#define RINGMARK_OUR_FIELD_I_(kind, name) (ringmark_##kind, RINGMARK_KIND_##kind, #name, ringmark_f_##name)

#define RINGMARK_MEMBER_(e, x, field) RINGMARK_CALL_(RINGMARK_MEMBER_I_, RINGMARK_BARE_ field)
#define RINGMARK_MEMBER_I_(kind, number, text, name) kind##_place name;
#define RINGMARK_ROOM_(e, x, field) RINGMARK_CALL_(RINGMARK_ROOM_I_, RINGMARK_BARE_ field)
#define RINGMARK_ROOM_I_(kind, number, text, name) kind##_room name;
#define RINGMARK_KEPT_(e, x, field) RINGMARK_CALL_(RINGMARK_KEPT_I_, RINGMARK_BARE_ field)
#define RINGMARK_KEPT_I_(kind, number, text, name) kind##_arg name;
#define RINGMARK_KEEP_(e, x, field) RINGMARK_CALL_(RINGMARK_KEEP_I_, RINGMARK_BARE_ field)
#define RINGMARK_KEEP_I_(kind, number, text, name) ringmark_it_.name = kind##_copy(&ringmark_rooms_->name, name);
#define RINGMARK_PARAMETER_(e, x, field) RINGMARK_CALL_(RINGMARK_PARAMETER_I_, RINGMARK_BARE_ field)
#define RINGMARK_PARAMETER_I_(kind, number, text, name) , kind##_arg name
#define RINGMARK_GIVEN_(e, x, field) RINGMARK_CALL_(RINGMARK_GIVEN_I_, RINGMARK_BARE_ field)
#define RINGMARK_GIVEN_I_(kind, number, text, name) , ringmark_it_->name
#define RINGMARK_LENGTH_(e, x, field) RINGMARK_CALL_(RINGMARK_LENGTH_I_, RINGMARK_BARE_ field)
#define RINGMARK_LENGTH_I_(kind, number, text, name) const uint64_t ringmark_length_of_##name = kind##_length(name);
#define RINGMARK_WORDS_(e, x, field) RINGMARK_CALL_(RINGMARK_WORDS_I_, RINGMARK_BARE_ field)
#define RINGMARK_WORDS_I_(kind, number, text, name) +(ringmark_length_of_##name + 7) / 8
#define RINGMARK_PUT_(e, ident, field) RINGMARK_CALL_(RINGMARK_PUT_I_, ident, RINGMARK_BARE_ field)
#define RINGMARK_PUT_I_(ident, kind, number, text, name)                                               \
    kind##_put(ringmark_payload_, RINGMARK_OFFSET_(ident, name), name, ringmark_length_of_##name,      \
               &ringmark_behind_);
#define RINGMARK_SHOW_(e, ident, field) RINGMARK_CALL_(RINGMARK_SHOW_I_, ident, RINGMARK_BARE_ field)
#define RINGMARK_SHOW_I_(ident, kind, number, text, name)                                              \
    kind##_show(ringmark_payload_, RINGMARK_OFFSET_(ident, name), name, ringmark_length_of_##name,     \
                &ringmark_behind_);
#define RINGMARK_FIELD_(e, ident, field) RINGMARK_CALL_(RINGMARK_FIELD_I_, ident, 0, RINGMARK_BARE_ field)
#define RINGMARK_VALUE_(e, ident, field)                                                               \
    RINGMARK_CALL_(RINGMARK_FIELD_I_, ident, RINGMARK_SEMANTIC_COUNTER, RINGMARK_BARE_ field)
#define RINGMARK_FIELD_I_(ident, semantic, kind, number, text, name)                                   \
    {text, RINGMARK_OFFSET_(ident, name), number, semantic, 0},
#define RINGMARK_OFFSET_(ident, name)                                                                  \
    ((uint32_t)offsetof(struct ident##_layout, name) - 8 + RINGMARK_LEAD_(ident))
/* Bytes in front of the fields: 8 for a span, its duration. */
#define RINGMARK_LEAD_(ident) ((uint32_t)sizeof(ident##_lead) - 1)
#define RINGMARK_FIXED_BYTES_(ident) ((uint32_t)sizeof(struct ident##_layout) - 8 + RINGMARK_LEAD_(ident))

/* ---- Types ------------------------------------------------------------------------------------ */

#define RINGMARK_SECTION_ __attribute__((__section__("ringmark_types"), __used__ RINGMARK_RETAIN_))
#if defined(__has_attribute)
#if __has_attribute(retain)
#define RINGMARK_RETAIN_ , __retain__
#endif
#endif
#ifndef RINGMARK_RETAIN_
#define RINGMARK_RETAIN_
#endif

/* The macros below name no member: a program may have a macro of that name. */
RINGMARK_INLINE_ uint32_t ringmark_enabled_(const struct ringmark_type *type) { return RINGMARK_LOAD_(type->enabled); }
RINGMARK_INLINE_ uint32_t ringmark_id_of_(const struct ringmark_span *span) { return span->id; }
RINGMARK_INLINE_ uint64_t ringmark_start_of_(const struct ringmark_span *span) { return span->start; }
RINGMARK_INLINE_ bool ringmark_is_reserved_(const struct ringmark_reservation *it) { return it->header != NULL; }

#define RINGMARK_DEFINE_(ident, shape_, level_, category_, lead_, first_, field_, ...)                 \
    typedef char ident##_lead[(lead_) + 1];                                                            \
    struct ident##_layout {                                                                            \
        uint64_t ringmark_lead_;                                                                       \
        RINGMARK_EACH_(RINGMARK_MEMBER_, ident, __VA_ARGS__)                                           \
    };                                                                                                 \
    static const struct ringmark_field ident##_fields[] = {                                            \
        first_ RINGMARK_EACH_(field_, ident, __VA_ARGS__){NULL, 0, 0, 0, 0}};                          \
    static struct ringmark_type ident##_type = {                                                       \
        0,                                                                                             \
        0,                                                                                             \
        RINGMARK_FIRST_(__VA_ARGS__),                                                                  \
        RINGMARK_TARGET,                                                                               \
        category_,                                                                                     \
        __FILE__,                                                                                      \
        ident##_fields,                                                                                \
        (uint32_t)(sizeof(ident##_fields) / sizeof(struct ringmark_field)) - 1,                        \
        __LINE__,                                                                                      \
        level_,                                                                                        \
        RINGMARK_SHAPE_##shape_};                                                                      \
    RINGMARK_SECTION_ static struct ringmark_type *ident##_listed = &ident##_type;                     \
    RINGMARK_INLINE_ void ident##_record(                                                              \
        uint32_t ringmark_id_, uint64_t ringmark_start_ RINGMARK_EACH_(RINGMARK_PARAMETER_, ident, __VA_ARGS__)) { \
        RINGMARK_EACH_(RINGMARK_LENGTH_, ident, __VA_ARGS__)                                           \
        const uint64_t ringmark_words_ =                                                               \
            RINGMARK_FIXED_BYTES_(ident) / 8 RINGMARK_EACH_(RINGMARK_WORDS_, ident, __VA_ARGS__);      \
        const uint64_t ringmark_end_ = (lead_) != 0 ? ringmark_ticks() : 0;                            \
        const struct ringmark_reservation ringmark_it_ =                                               \
            (lead_) != 0 ? ringmark_reserve_at(ringmark_id_, ringmark_words_, ringmark_end_)           \
                         : ringmark_reserve(ringmark_id_, ringmark_words_);                            \
        if (RINGMARK_LIKELY_(ringmark_is_reserved_(&ringmark_it_))) {                                  \
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

#define RINGMARK_NOT_TOO_MANY_(...)                                                                    \
    RINGMARK_ASSERT_(RINGMARK_COUNT_(__VA_ARGS__) <= 17, "ringmark: a type has at most 16 fields");

/* An event: RINGMARK_EVENT(ident, "name", (kind, field), ...); at file scope. */
#define RINGMARK_EVENT(...) RINGMARK_EVENT_I_(, ringmark_##__VA_ARGS__)
#define RINGMARK_EVENT_I_(e, ident, ...)                                                               \
    RINGMARK_NOT_TOO_MANY_(__VA_ARGS__)                                                                \
    RINGMARK_DEFINE_(ident, EVENT, RINGMARK_LEVEL_INFO, "", 0, , RINGMARK_FIELD_, RINGMARK_OURS_(e, e##__VA_ARGS__)) \
    RINGMARK_ASSERT_(1, "")
/* The same with a level (ERROR, WARN, INFO, DEBUG or TRACE) and a category. */
#define RINGMARK_EVENT_WITH(...) RINGMARK_EVENT_WITH_I_(, ringmark_##__VA_ARGS__)
#define RINGMARK_EVENT_WITH_I_(e, ident, level, category, ...)                                         \
    RINGMARK_NOT_TOO_MANY_(__VA_ARGS__)                                                                \
    RINGMARK_DEFINE_(ident, EVENT, RINGMARK_LEVEL_##level, category, 0, , RINGMARK_FIELD_,             \
                     RINGMARK_OURS_(e, e##__VA_ARGS__))                                                \
    RINGMARK_ASSERT_(1, "")
/* A counter: RINGMARK_COUNTER(ident, "name", kind); recorded by ringmark_event(ident, value). */
#define RINGMARK_COUNTER(ident, name, kind)                                                            \
    RINGMARK_DEFINE_(ringmark_##ident, COUNTER, RINGMARK_LEVEL_INFO, "", 0, , RINGMARK_VALUE_, name,   \
                     (ringmark_##kind, RINGMARK_KIND_##kind, "value", ringmark_f_value))               \
    RINGMARK_ASSERT_(1, "")
/* A span: RINGMARK_SPAN(ident, "name", (kind, field), ...). */
#define RINGMARK_SPAN(...) RINGMARK_SPAN_I_(, ringmark_##__VA_ARGS__)
#define RINGMARK_SPAN_I_(e, ident, ...)                                                                \
    RINGMARK_NOT_TOO_MANY_(__VA_ARGS__)                                                                \
    RINGMARK_DEFINE_SPAN_(ident, RINGMARK_LEVEL_INFO, "", RINGMARK_OURS_(e, e##__VA_ARGS__))
#define RINGMARK_SPAN_WITH(...) RINGMARK_SPAN_WITH_I_(, ringmark_##__VA_ARGS__)
#define RINGMARK_SPAN_WITH_I_(e, ident, level, category, ...)                                          \
    RINGMARK_NOT_TOO_MANY_(__VA_ARGS__)                                                                \
    RINGMARK_DEFINE_SPAN_(ident, RINGMARK_LEVEL_##level, category, RINGMARK_OURS_(e, e##__VA_ARGS__))
#define RINGMARK_DEFINE_SPAN_(ident, level, category, ...)                                             \
    RINGMARK_DEFINE_(ident, SPAN, level, category, 8, RINGMARK_DURATION_, RINGMARK_FIELD_, __VA_ARGS__) \
    struct ident##_rooms {                                                                             \
        char ringmark_unused_;                                                                         \
        RINGMARK_EACH_(RINGMARK_ROOM_, ident, __VA_ARGS__)                                             \
    };                                                                                                 \
    struct ident##_scope {                                                                             \
        struct ringmark_span ringmark_span_;                                                           \
        RINGMARK_EACH_(RINGMARK_KEPT_, ident, __VA_ARGS__)                                             \
    };                                                                                                 \
    RINGMARK_INLINE_ struct ident##_scope ident##_enter(                                               \
        uint32_t ringmark_id_,                                                                         \
        struct ident##_rooms *ringmark_rooms_ RINGMARK_EACH_(RINGMARK_PARAMETER_, ident, __VA_ARGS__)) { \
        struct ident##_scope ringmark_it_;                                                             \
        (void)ringmark_rooms_;                                                                         \
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
    RINGMARK_INLINE_ struct ident##_scope ident##_stay(void) {                                         \
        struct ident##_scope ringmark_it_;                                                             \
        __builtin_memset(&ringmark_it_, 0, sizeof ringmark_it_);                                       \
        return ringmark_it_;                                                                           \
    }                                                                                                  \
    RINGMARK_INLINE_ void ident##_leave(const struct ident##_scope *ringmark_it_) {                    \
        if (ringmark_id_of_(&ringmark_it_->ringmark_span_) != 0) {                                     \
            ident##_record(ringmark_id_of_(&ringmark_it_->ringmark_span_),                             \
                           ringmark_start_of_(&ringmark_it_->ringmark_span_)                           \
                               RINGMARK_EACH_(RINGMARK_GIVEN_, ident, __VA_ARGS__));                   \
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
#define ringmark_is_on(ident) RINGMARK_IS_ON_(ringmark_##ident)
#define RINGMARK_IS_ON_(ident) ringmark_enabled_(&ident##_type)

/* Records an event, or a counter's value: ringmark_event(ident, values...). */
#define ringmark_event(...) RINGMARK_CAT_(RINGMARK_EMIT_, RINGMARK_MANY_(__VA_ARGS__))(ringmark_##__VA_ARGS__)
#define RINGMARK_EMIT_1(ident)                                                                         \
    do {                                                                                               \
        const uint32_t ringmark_id_ = RINGMARK_IS_ON_(ident);                                          \
        if (RINGMARK_LIKELY_(ringmark_id_ != 0)) {                                                     \
            ident##_record(ringmark_id_, 0);                                                           \
        }                                                                                              \
    } while (0)
#define RINGMARK_EMIT_2(ident, ...)                                                                    \
    do {                                                                                               \
        const uint32_t ringmark_id_ = RINGMARK_IS_ON_(ident);                                          \
        if (RINGMARK_LIKELY_(ringmark_id_ != 0)) {                                                     \
            ident##_record(ringmark_id_, 0, __VA_ARGS__);                                              \
        }                                                                                              \
    } while (0)

/* Begins a span: struct ringmark_span span = ringmark_begin(ident). It needs an end. */
#define ringmark_begin(ident) ringmark_begin_(RINGMARK_IS_ON_(ringmark_##ident))
/* Ends and records it: ringmark_end(ident, span, values...). */
#define ringmark_end(ident, ...)                                                                       \
    RINGMARK_CAT_(RINGMARK_END_, RINGMARK_MANY_(__VA_ARGS__))(ringmark_##ident, __VA_ARGS__)
#define RINGMARK_END_1(ident, span)                                                                    \
    do {                                                                                               \
        if (ringmark_id_of_(&(span)) != 0) {                                                           \
            ident##_record(ringmark_id_of_(&(span)), ringmark_start_of_(&(span)));                     \
            ringmark_pop_(&(span), 0);                                                                 \
        }                                                                                              \
    } while (0)
#define RINGMARK_END_2(ident, span, ...)                                                               \
    do {                                                                                               \
        if (ringmark_id_of_(&(span)) != 0) {                                                           \
            ident##_record(ringmark_id_of_(&(span)), ringmark_start_of_(&(span)), __VA_ARGS__);        \
            ringmark_pop_(&(span), 0);                                                                 \
        }                                                                                              \
    } while (0)
/* A span to the end of the block, however that is left (in C++ also by an exception):
 * RINGMARK_SCOPE(ident, values...). They are taken, and texts and bytes are copied, at its beginning: up to
 * RINGMARK_SCOPE_KEEPS bytes of each. */
#define RINGMARK_SCOPE(...)                                                                            \
    RINGMARK_CAT_(RINGMARK_SCOPE_, RINGMARK_MANY_(__VA_ARGS__))(__COUNTER__, ringmark_##__VA_ARGS__)
#define RINGMARK_SCOPE_1(number, ident)                                                                \
    RINGMARK_GUARD_(number, ident) =                                                                   \
        RINGMARK_IS_ON_(ident) != 0                                                                    \
            ? ident##_enter(RINGMARK_IS_ON_(ident), &RINGMARK_CAT_(ringmark_rooms_, number))           \
            : ident##_stay()
#define RINGMARK_SCOPE_2(number, ident, ...)                                                           \
    RINGMARK_GUARD_(number, ident) =                                                                   \
        RINGMARK_IS_ON_(ident) != 0                                                                    \
            ? ident##_enter(RINGMARK_IS_ON_(ident), &RINGMARK_CAT_(ringmark_rooms_, number), __VA_ARGS__) \
            : ident##_stay()
/* The rooms outlive the guard, whose end reads them. */
#define RINGMARK_GUARD_(number, ident)                                                                 \
    struct ident##_rooms RINGMARK_CAT_(ringmark_rooms_, number);                                       \
    const struct ident##_scope RINGMARK_CAT_(ringmark_guard_, number)                                  \
        __attribute__((__cleanup__(ident##_leave), __unused__))

/* ---- Registration ----------------------------------------------------------------------------- */

#ifdef __cplusplus
extern "C" {
#endif
extern struct ringmark_type *__start_ringmark_types[] __attribute__((__visibility__("hidden")));
extern struct ringmark_type *__stop_ringmark_types[] __attribute__((__visibility__("hidden")));
#ifdef __cplusplus
}
#endif

/* The section is there also where no type is. */
RINGMARK_SECTION_ static struct ringmark_type *ringmark_listed_none_ = NULL;

/* No function of the program's own: without patch sites and other instrumentation. */
#if defined(__has_attribute)
#if __has_attribute(__patchable_function_entry__)
#define RINGMARK_UNTRACED_ __attribute__((__patchable_function_entry__(0), __no_instrument_function__))
#endif
#endif
#ifndef RINGMARK_UNTRACED_
#define RINGMARK_UNTRACED_ __attribute__((__no_instrument_function__))
#endif

/* The library takes each section once. */
RINGMARK_UNTRACED_ __attribute__((__constructor__(101))) static void ringmark_register_types_(void) {
    ringmark_register_types(RINGMARK_LAYOUT, &ringmark_thread_block, __start_ringmark_types,
                            __stop_ringmark_types);
}

#endif
