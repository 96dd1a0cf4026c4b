// Types in a header: each unit that includes it has its own.
#pragma once
#include <ringmark.h>

RINGMARK_EVENT(shared, "shared", (u32, number));

inline void in_header(std::uint32_t number) { ringmark_event(shared, number); }

void second_unit(std::uint32_t number);
