/* A class without a file of its own: each file that uses it has its functions, and the linker keeps
   those of one. */
#define KEPT __attribute__((noinline, noclone))

struct Shape {
    KEPT virtual ~Shape() {}
    KEPT virtual int sides() { return 0; }
};
struct Square : Shape {
    KEPT int sides() override { return 4; }
};

int other(Shape &shape);
Shape *make();
