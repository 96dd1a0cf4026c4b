/* Ringmark's function tracer, for programs that use libringmark_functions.so themselves.
 *
 * Nothing here unwinds into the program, and nothing may be called from a signal handler or from a
 * callback. */
#ifndef RINGMARK_FUNCTIONS_H
#define RINGMARK_FUNCTIONS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Gets an address in the function that was entered, and the return address of the call: where its
 * caller goes on.
 *
 * It runs before the function, on the thread that called, also in signal handlers, and wherever else
 * the program calls traced functions: on the stack of the call where 32 KiB of it are left, else on
 * one of 256 KiB, with signals blocked. Functions that it calls are
 * traced, but do not call it again. errno stays as it was. It must return: not by a jump, an
 * exception or the end of its thread. */
typedef void ringmark_functions_entered(uint64_t function, uint64_t caller);

/* Says what the callback tracer `name` calls from now on; it is made if there is none. NULL: it calls
 * nothing, on or off. Which functions call it, and whether it is on, is said as for any tracer and
 * in any order: `ringmark trace start -p PID --tracer NAME --filter PATTERN`, or by a request.
 * Another thread may be in the function before for a while: it must never be unloaded.
 *
 * Returns 0, or -1: the name is NULL or that of a tracer of another kind, or there are too many. */
int ringmark_functions_callback(const char *name, ringmark_functions_entered *function);

/* Does what `ringmark trace` asks for: lines, the first one `trace VERB`, the others `key=value`.
 *
 *     ringmark_functions_request("trace start\ntracer=mine\nfilter=work_*\nnotrace=*_idle", NULL, 0);
 *     ringmark_functions_request("trace stop\ntracer=mine", NULL, 0);
 *
 * The answer, or what was wrong, is written to `answer` as a string, as far as its `bytes` reach.
 * Returns 0, or -1: it was not done. */
int ringmark_functions_request(const char *request, char *answer, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
