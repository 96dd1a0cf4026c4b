/* Every kind of type in one C program.
 *
 *     cc hello.c $(pkg-config --cflags --libs ringmark) -o hello
 *     ringmark run -- ./hello */
#include <ringmark.h>
#include <stdio.h>

RINGMARK_EVENT(request_accepted, "request.accepted", (u64, id));
RINGMARK_EVENT_WITH(request_done, DEBUG, "net", "request.done", (u16, status), (str, path), (f64, share));
RINGMARK_EVENT(idle, "idle");
RINGMARK_COUNTER(queue_depth, "queue.depth", u64);
RINGMARK_SPAN(request, "request", (u64, id));
RINGMARK_SPAN(query, "db.query", (u32, rows));

static uint32_t run_query(uint64_t id) { return (uint32_t)(id * 3); }

static void serve(uint64_t id) {
    RINGMARK_SCOPE(request, id);
    ringmark_event(request_accepted, id);
    struct ringmark_span span = ringmark_begin(query);
    uint32_t rows = run_query(id);
    ringmark_end(query, span, rows);
    ringmark_event(request_done, 200, "/index.html", (double)rows / 10);
}

int main(void) {
    if (ringmark_start_from_env() != 0) {
        fprintf(stderr, "hello: not traced (RINGMARK=1 asks for it)\n");
    }
    for (uint64_t id = 0; id < 5; ++id) {
        serve(id);
        ringmark_event(queue_depth, 5 - id);
    }
    ringmark_event(idle);
    return 0;
}
