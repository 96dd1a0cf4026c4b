/* Follows its frame pointers, as profilers do, and prints the functions that it comes to; "elsewhere" for
   an address outside of the program. Built with -fno-omit-frame-pointer and -rdynamic. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* clang makes no clones. */
#ifdef __clang__
#define APART __attribute__((noinline))
#else
#define APART __attribute__((noinline, noclone))
#endif

struct frame {
    struct frame *next;
    void *return_address;
};

APART int innermost(int x) {
    struct frame *frame = __builtin_frame_address(0);
    Dl_info own, found;
    if (!dladdr((void *)innermost, &own))
        return -1;
    for (int depth = 0; depth < 3; depth++) {
        int is_found = dladdr(frame->return_address, &found);
        int is_own = is_found && found.dli_fbase == own.dli_fbase;
        puts(is_own && found.dli_sname ? found.dli_sname : "elsewhere");
        frame = frame->next;
    }
    return x;
}

APART int middle(int x) { return innermost(x + 1) + 1; }
APART int outer(int x) { return middle(x + 1) + 1; }

int main(void) { return outer(0) == 4 ? 0 : 1; }
