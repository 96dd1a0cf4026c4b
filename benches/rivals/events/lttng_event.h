/* An event with one u64, as LTTng-UST wants it declared. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ringmark_rival
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "lttng_event.h"

#if !defined(LTTNG_EVENT_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_EVENT_H
#include <lttng/tracepoint.h>

LTTNG_UST_TRACEPOINT_EVENT(ringmark_rival, bench_event, LTTNG_UST_TP_ARGS(unsigned long, value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(unsigned long, value, value)))

#endif
#include <lttng/tracepoint-event.h>
