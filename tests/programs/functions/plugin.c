/* What modules.c loads. */
__attribute__((noinline)) int plugin_inner(int x) { return x + 1; }
int plugin_outer(int x) { return plugin_inner(x) * 2; }
