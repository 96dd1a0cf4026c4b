// Loaded and unloaded by `attach_loop` all the time.
#include <stdlib.h>

int plugin_twice(int number) {
    void *block = malloc(number);
    free(block);
    return 2 * number;
}
