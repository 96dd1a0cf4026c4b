/* Including DPDK's registration header changes what the macros of dpdk_event.h mean. */
#define ALLOW_EXPERIMENTAL_API
#include <rte_trace_point_register.h>

#include "dpdk_event.h"

RTE_TRACE_POINT_REGISTER(rival_event, rival.event)
