/* What is traced: compiled once per tracer, with that tracer's flags. */
#define LEAVES 8

long leaf_0(long);
long leaf_1(long);
long leaf_2(long);
long leaf_3(long);
long leaf_4(long);
long leaf_5(long);
long leaf_6(long);
long leaf_7(long);
void never_called(void);
/* Calls some 230 small functions that do something. */
void program_round(long seed);
