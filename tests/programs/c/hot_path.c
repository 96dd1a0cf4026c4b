/* The event path as one function each, for looking at its machine code. The same as
 * producer/examples/hot_path.rs. */
#include <unistd.h>

#define RINGMARK_TARGET "hot"
#include <ringmark.h>

RINGMARK_EVENT(hot_event, "hot.event", (u64, value));
RINGMARK_EVENT(hot_empty, "hot.empty");
RINGMARK_EVENT(hot_mixed, "hot.mixed", (u16, status), (bool, ok), (u64, bytes));

#define ALONE __attribute__((noinline))
void c_hot_path_event_u64(uint64_t value);
void c_hot_path_event_empty(void);
void c_hot_path_event_mixed(uint16_t status, bool ok, uint64_t bytes);

ALONE void c_hot_path_event_u64(uint64_t value) { ringmark_event(hot_event, value); }

ALONE void c_hot_path_event_empty(void) { ringmark_event(hot_empty); }

ALONE void c_hot_path_event_mixed(uint16_t status, bool ok, uint64_t bytes) {
    ringmark_event(hot_mixed, status, ok, bytes);
}

int main(int arguments, char **unused) {
    (void)unused;
    ringmark_start_from_env();
    if (arguments > 1) {
        c_hot_path_event_empty();
        sleep(3);
    }
    for (uint64_t i = 0; i < 1000; ++i) {
        c_hot_path_event_u64(i);
        c_hot_path_event_empty();
        c_hot_path_event_mixed(200, true, i);
    }
    return 0;
}
