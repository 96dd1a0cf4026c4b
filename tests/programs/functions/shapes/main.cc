/* The entry of the first function decides what the linker does with the entries of the whole file. */
#ifdef OWN_FIRST
__attribute__((noinline, noclone)) static int scaled(int x) { return x * 3; }
#else
#define scaled(x) ((x) * 3)
#endif
#include "shapes.h"

KEPT int own(Shape &shape) { return scaled(shape.sides()) - 9; }

int main() {
    Shape *made = make();
    Square square;
    int sum = own(square) + other(*made);
    delete made;
    return sum == 8 ? 0 : 1;
}
