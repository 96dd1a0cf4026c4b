// Functions with wide, marked and long names, and deep calls.

#define REST abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz_abcdefghijklmnopqrstuvwxyz
#define JOIN(a, b) a##b
#define NAME(a, b) JOIN(a, b)

volatile int total;

__attribute__((noinline)) void 要求を処理するとても長い名前の関数です要求を処理する(int depth)
{
    // Longer than the clock's smallest step.
    for (int i = 0; i < 500; i++)
        total += depth;
    if (depth > 0)
        要求を処理するとても長い名前の関数です要求を処理する(depth - 1);
    total -= 1;
}

__attribute__((noinline)) void NAME(long_, REST)(void)
{
    for (int i = 0; i < 30; i++)
        要求を処理するとても長い名前の関数です要求を処理する(i);
    total += 1;
}

int main(void)
{
    NAME(long_, REST)();
    return 0;
}
