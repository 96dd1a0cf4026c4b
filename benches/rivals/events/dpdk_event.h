/* An event with one u64, as DPDK wants it declared; registered in dpdk_register.c. */
#include <rte_trace_point.h>

RTE_TRACE_POINT(rival_event, RTE_TRACE_POINT_ARGS(uint64_t value), rte_trace_point_emit_u64(value);)
