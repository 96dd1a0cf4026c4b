// The other unit of cxx.cc.
#include <cstdint>

#include "cxx.h"

void second_unit(std::uint32_t number) {
    ringmark_event(shared, number);
    in_header(number + 1);
}
