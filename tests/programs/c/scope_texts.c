/* Texts and bytes of scopes that change, or are freed, before their blocks end; values that are longer than
 * a scope keeps, and lengths that no memory has. Compiled as C11 and as C++17. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RINGMARK_TARGET "scopes"
#include <ringmark.h>

RINGMARK_SPAN(query, "query", (u32, rows), (str, text), (bytes, raw));
RINGMARK_SPAN(lone, "lone", (str, text));
RINGMARK_EVENT(got, "got", (i64, n), (bytes, data));

static const struct ringmark_bytes NOTHING = {NULL, 0};

static char *heap_text(const char *from) {
    const size_t bytes = strlen(from) + 1;
    char *const text = (char *)malloc(bytes);
    if (text == NULL) {
        exit(4);
    }
    memcpy(text, from, bytes);
    return text;
}

/* The block ends after its values have gone. */
static void freed_before_the_end(void) {
    char *const text = heap_text("select a from b where c");
    char *const raw = heap_text("raw");
    const struct ringmark_bytes bytes = {raw, 3};
    RINGMARK_SCOPE(query, 1, text, bytes);
    memset(text, 'W', strlen(text));
    memset(raw, 'W', 3);
    free(text);
    free(raw);
}

static void of_length(size_t length, const char *unit) {
    char *const text = (char *)malloc(length + 4);
    if (text == NULL) {
        exit(4);
    }
    size_t used = 0;
    while (used < length) {
        memcpy(text + used, unit, strlen(unit));
        used += strlen(unit);
    }
    text[used] = 0;
    const struct ringmark_bytes bytes = {text, used};
    RINGMARK_SCOPE(query, (uint32_t)used, text, bytes);
    free(text);
}

/* Two scopes of one line, as a program's macro has them. */
#define BOTH(text)                                                                                     \
    RINGMARK_SCOPE(lone, text);                                                                        \
    RINGMARK_SCOPE(lone, "inner")

static void two_of_one_line(void) { BOTH("outer"); }

/* What an unchecked read() gives: -1 as a length, and its neighbours. */
static void wrapped_lengths(void) {
    char buffer[8] = "seven..";
    for (volatile size_t back = 1; back <= 9; ++back) { /* The compiler cannot know it. */
        const struct ringmark_bytes wrapped = {buffer, (size_t)0 - back};
        ringmark_event(got, -(int64_t)back, wrapped);
        RINGMARK_SCOPE(query, 0, "wrapped", wrapped);
    }
    const struct ringmark_bytes whole = {buffer, 7};
    ringmark_event(got, 7, whole);
}

int main(void) {
    if (ringmark_start_from_env() != 0) {
        return 3;
    }
    freed_before_the_end();
    of_length(RINGMARK_SCOPE_KEEPS, "x");
    of_length(RINGMARK_SCOPE_KEEPS + 1, "x");
    of_length(2000, "\xe2\x82\xac"); /* Three bytes each. */
    two_of_one_line();
    {
        RINGMARK_SCOPE(query, 0, NULL, NOTHING);
    }
    wrapped_lengths();
    return 0;
}
