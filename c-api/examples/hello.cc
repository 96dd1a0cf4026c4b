// The same as hello.c, as C++17 has it.
//
//     c++ -std=c++17 hello.cc $(pkg-config --cflags --libs ringmark) -o hello
//     ringmark run -- ./hello
#include <iostream>
#include <string>

#include <ringmark.h>

RINGMARK_EVENT(request_accepted, "request.accepted", (u64, id));
RINGMARK_EVENT_WITH(request_done, DEBUG, "net", "request.done", (u16, status), (str, path), (f64, share));
RINGMARK_EVENT(idle, "idle");
RINGMARK_COUNTER(queue_depth, "queue.depth", u64);
RINGMARK_SPAN(request, "request", (u64, id));
RINGMARK_SPAN(query, "db.query", (u32, rows));

namespace {

std::uint32_t run_query(std::uint64_t id) {
    const auto rows = static_cast<std::uint32_t>(id * 3);
    RINGMARK_SCOPE(query, rows);
    return rows;
}

void serve(std::uint64_t id, const std::string &path) {
    RINGMARK_SCOPE(request, id);
    ringmark_event(request_accepted, id);
    const double share = run_query(id) / 10.0;
    ringmark_event(request_done, 200, path.c_str(), share);
}

} // namespace

int main() {
    if (ringmark_start_from_env() != 0) {
        std::cerr << "hello: not traced (RINGMARK=1 asks for it)\n";
    }
    for (std::uint64_t id = 0; id < 5; ++id) {
        serve(id, "/index.html");
        ringmark_event(queue_depth, 5 - id);
    }
    ringmark_event(idle);
}
