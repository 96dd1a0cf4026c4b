#include "shapes.h"

KEPT int other(Shape &shape) { return shape.sides() + 1; }
KEPT Shape *make() { return new Square; }
