/* DPDK's rte_trace: a buffer per thread, older events are overwritten and not counted. */
#define ALLOW_EXPERIMENTAL_API
#include <stdio.h>
#include <stdlib.h>

#include <rte_eal.h>
#include <rte_trace.h>

#include "dpdk_event.h"

/* Before the program pins itself to its core. */
void tracer_begin(void) {
    char *words[] = {"worker", "--no-huge", "--no-shconf", "--no-pci", "-m", "64", "--no-telemetry",
                     "--log-level=error", "--trace=rival.*",
                     "--lcores", getenv("LCORES"), NULL};
    if (rte_eal_init(11, words) < 0) {
        fprintf(stderr, "worker: DPDK did not start\n");
        exit(1);
    }
    if (!rte_trace_is_enabled() || !rte_trace_point_is_enabled(&__rival_event))
        fprintf(stderr, "worker: DPDK's trace point is off\n");
}

void tracer_events(long n) {
    for (long i = 0; i < n; i++)
        rival_event((uint64_t)i);
}
