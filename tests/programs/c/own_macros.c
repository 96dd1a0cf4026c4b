/* A program with macros that are called as kinds, levels, members and fields are. As C11 and as C++17. */
#define cleanup 4
#define unused 4
#include <ringmark.h>
#define N 100
#define DEBUG 1
#define INFO 2
#define EVENT 3
#define u32 unsigned int
#define str "text"
#define id 5
#define start 6
#define enabled 7
#define header 8
#define name 9
#define value 10
#define e 11

RINGMARK_EVENT(done, "done", (u32, N), (str, value), (bool, e));
RINGMARK_EVENT_WITH(less, DEBUG, "net", "less");
RINGMARK_SPAN_WITH(held, INFO, "net", "held", (u32, id), (str, name));
RINGMARK_COUNTER(depth, "depth", u32);

int main(void) {
    if (ringmark_start_from_env() != 0) {
        return 3;
    }
    ringmark_event(done, N, "three", true);
    ringmark_event(less);
    ringmark_event(depth, N + 1);
    struct ringmark_span span = ringmark_begin(held);
    ringmark_end(held, span, 1, "ended");
    RINGMARK_SCOPE(held, 2, "scope");
    return ringmark_is_on(less) != 0 ? 0 : 4;
}

#ifdef SEVENTEEN
RINGMARK_EVENT(many, "many", (u8, f1), (u8, f2), (u8, f3), (u8, f4), (u8, f5), (u8, f6), (u8, f7), (u8, f8), (u8, f9),
               (u8, f10), (u8, f11), (u8, f12), (u8, f13), (u8, f14), (u8, f15), (u8, f16), (u8, f17));
#endif
