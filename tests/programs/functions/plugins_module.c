/* The modules of plugins.c: functions are called by the loader before `dlopen` returns, and by
   `dlclose`. */
#include <unistd.h>

__attribute__((noinline, noclone)) int plug_part(int x) { return x * 2; }
__attribute__((noinline)) int plug_work(int x) { return plug_part(x) + x + 1; }
static volatile int sink;

__attribute__((constructor)) static void plug_begin(void) {
#ifdef SLOW
    usleep(SLOW);
#endif
    sink = plug_work(sink);
}

__attribute__((destructor)) static void plug_end(void) { sink = plug_part(sink); }

static int (*resolved(void))(int) { return plug_part; }
/* Called by the loader while it relocates the module. */
int plug_chosen(int) __attribute__((ifunc("resolved")));
int (*plug_pointer)(int) = plug_chosen;
