// Calls from several places, one of them itself.

volatile int total;

__attribute__((noinline)) void leaf(void)
{
    // Longer than the clock's smallest step.
    for (int i = 0; i < 200; i++)
        total += i;
}

__attribute__((noinline)) void twice(void)
{
    leaf();
    leaf();
    total += 1;
}

__attribute__((noinline)) void deeper(int depth)
{
    leaf();
    if (depth > 0)
        deeper(depth - 1);
    total += 1;
}

int main(void)
{
    for (int i = 0; i < 10; i++) {
        twice();
        deeper(2);
    }
    total += 1;
    return 0;
}
