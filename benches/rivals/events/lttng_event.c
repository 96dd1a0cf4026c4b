/* LTTng-UST. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_event.h"

void tracer_events(long n) {
    for (long i = 0; i < n; i++)
        lttng_ust_tracepoint(ringmark_rival, bench_event, (unsigned long)i);
}
