/* A shared object with event types of its own. */
#define RINGMARK_TARGET "plugin"
#include <ringmark.h>

RINGMARK_EVENT(plugged, "plugin.called", (u64, n));

void plugin_call(uint64_t n);
void plugin_call(uint64_t n) { ringmark_event(plugged, n); }
