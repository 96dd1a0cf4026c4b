/* XRay's flight data recorder, switched by the process itself: it has no other control. */
#include <cstdio>
#include <cstdlib>
#include <xray/xray_interface.h>
#include <xray/xray_log_interface.h>

static bool is_on;

extern "C" void tracer_switch(void) {
    if ((is_on ? __xray_unpatch() : __xray_patch()) != XRayPatchingStatus::SUCCESS)
        fprintf(stderr, "worker: XRay did not switch\n");
    is_on = !is_on;
}

extern "C" void tracer_begin(void) {
    const char *fdr = getenv("FDR");
    if (!fdr)
        return;
    __xray_log_select_mode("xray-fdr");
    if (__xray_log_init_mode("xray-fdr", fdr) != XRayLogInitStatus::XRAY_LOG_INITIALIZED)
        fprintf(stderr, "worker: XRay's log did not start\n");
    tracer_switch();
}

extern "C" void tracer_end(void) {
    if (!getenv("FDR"))
        return;
    if (is_on)
        tracer_switch();
    __xray_log_finalize();
    __xray_log_flushLog();
}
