/* Sorts numbers: nothing in it is made for a tracer. */
#include <stdio.h>

static int numbers[] = {5, 3, 8, 1, 9, 2};
enum { COUNT = sizeof numbers / sizeof *numbers };

__attribute__((noinline)) static void exchange(int *a, int *b) {
    int kept = *a;
    *a = *b;
    *b = kept;
}

__attribute__((noinline)) static int smallest_from(int start) {
    int found = start;
    for (int i = start; i < COUNT; ++i) {
        found = numbers[i] < numbers[found] ? i : found;
    }
    return found;
}

__attribute__((noinline)) static void sort(void) {
    for (int i = 0; i < COUNT; ++i) {
        exchange(&numbers[i], &numbers[smallest_from(i)]);
    }
}

int main(void) {
    sort();
    printf("%d is the smallest\n", numbers[0]);
    return 0;
}
