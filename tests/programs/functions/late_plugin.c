/* The module of late.c. */
__attribute__((noinline, noclone)) int plug_part(int x) { return x * 2; }
__attribute__((noinline)) int plug_work(int x) { return plug_part(x) + x + 1; }
