// What only C++ has: templates, inline functions, exceptions that leave a scope, a second unit.
#include <cstdio>
#include <stdexcept>
#include <string>

#define RINGMARK_TARGET "cxx"
#include <ringmark.h>

#include "cxx.h"

RINGMARK_SPAN(attempt, "attempt", (u32, number));
RINGMARK_EVENT(seen, "seen", (str, what), (u64, bytes));

namespace {

template <typename T> void look(const T &value) { ringmark_event(seen, value.c_str(), sizeof(T)); }

void try_it(std::uint32_t number) {
    RINGMARK_SCOPE(attempt, number);
    auto later = [&] { ringmark_event(shared, number); };
    later();
    if (number % 2 != 0) {
        throw std::runtime_error("odd");
    }
}

} // namespace

int main() {
    if (ringmark_start_from_env() != 0) {
        return 3;
    }
    int caught = 0;
    for (std::uint32_t number = 0; number < 4; ++number) {
        try {
            try_it(number);
        } catch (const std::runtime_error &) {
            ++caught;
        }
    }
    look(std::string("a string"));
    in_header(10);
    second_unit(20);
    return caught == 2 ? 0 : 4;
}
