// A program that has its own function called at the entry of others: callbacks THREADS ROUNDS.
// Negative: rounds without end.
#include "../../../function-tracer/shared-object/include/ringmark_functions.h"
#include "calls.h"
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define PLACE __attribute__((noipa))

static PLACE unsigned long leaf(unsigned long n) {
    COUNT();
    return n + 1;
}
static PLACE unsigned long work(unsigned long n) {
    COUNT();
    return INNER(leaf(n)) * 3;
}
static PLACE unsigned long helper(unsigned long n) {
    COUNT();
    return n ^ 5;
}
static PLACE void on_signal(int number) {
    COUNT();
    errno = number;
}

// What the callback saw.
static unsigned long of_work, of_leaf, of_other, from_work, second;
static volatile double kept;

// Behind its site.
static QUIET int is_entry_of(uint64_t address, const void *function) {
    return address - (uint64_t)function < 16;
}
static QUIET int is_in_work(uint64_t address) { return address - (uint64_t)work < 64; }
static QUIET void add(unsigned long *count) { __atomic_fetch_add(count, 1, __ATOMIC_RELAXED); }

static QUIET void entered(uint64_t function, uint64_t caller) {
    if (is_entry_of(function, (const void *)work)) {
        add(&of_work);
    } else if (is_entry_of(function, (const void *)leaf)) {
        add(&of_leaf);
        if (is_in_work(caller)) add(&from_work);
    } else {
        add(&of_other);
    }
    // Traced itself; registers and errno that the program must not see changed.
    helper(leaf(function));
    errno = 77;
    kept = kept * 1.5 + 1;
}
static QUIET void entered_too(uint64_t function, uint64_t caller) {
    (void)function, (void)caller;
    add(&second);
}

static QUIET void *thread(void *argument) {
    long rounds = (long)argument;
    unsigned long n = 0;
    for (long i = 0; rounds < 0 || i < rounds; i++) {
        errno = 4711;
        n = work(n);
        expect(errno == 4711, "errno");
        if (rounds < 0) usleep(200);
    }
    return (void *)n;
}

static QUIET void run(long threads, long rounds, const char *what) {
    pthread_t all[64];
    void *sum = NULL;
    of_work = of_leaf = of_other = from_work = second = 0;
    for (long i = 0; i < threads; i++) pthread_create(&all[i], NULL, thread, (void *)rounds);
    for (long i = 0; i < threads; i++) pthread_join(all[i], &sum);
    raise(SIGUSR1);
    printf("%s %lu %lu %lu %lu %lu %lx\n", what, of_work, of_leaf, from_work, of_other, second,
           (unsigned long)sum);
    fflush(stdout);
}

static QUIET void ask(const char *request, int expected, const char *text) {
    char answer[4096] = "";
    int result = ringmark_functions_request(request, answer, sizeof answer);
    if (result != expected || !strstr(answer, text)) {
        fprintf(stderr, "WRONG: %s: %d %s, expected %d %s\n", request, result, answer, expected, text);
        _exit(97);
    }
}

int main(int count, char **arguments) {
    long threads = count > 1 ? atol(arguments[1]) : 4;
    long rounds = count > 2 ? atol(arguments[2]) : 1000;
    expect(threads > 0 && threads <= 64, "threads");
    signal(SIGUSR1, on_signal);
    expect(ringmark_functions_callback("mine", entered) == 0, "register");
    if (rounds < 0) {
        run(threads, rounds, "waits");
        return 0;
    }
    expect(ringmark_functions_callback(NULL, entered) == -1, "no name");
    expect(ringmark_functions_callback("two words", entered) == -1, "two words");
    expect(ringmark_functions_callback("graph", entered) == -1, "another kind");
    run(threads, rounds, "off");
    ask("trace start\ntracer=mine", -1, "no functions were named");
    ask("trace start\ntracer=mine\nfilter=work\nfilter=leaf\nfilter=helper", 0, "matched=3\n");
    run(threads, rounds, "on");
    ask("trace notrace\ntracer=mine\nnotrace=work", 0, "matched=2\n");
    ask("trace start\ntracer=other\nkind=callback\nfilter=work\nfilter=on_signal", 0, "note=");
    run(threads, rounds, "notrace");
    expect(ringmark_functions_callback("other", entered_too) == 0, "register another");
    run(threads, rounds, "both");
    // Two switches, in any order.
    expect(ringmark_functions_callback("mine", NULL) == 0, "take away");
    run(threads, rounds, "away");
    ask("trace stop\ntracer=mine", 0, "open=2\n");
    expect(ringmark_functions_callback("mine", entered) == 0, "again");
    run(threads, rounds, "stopped");
    expect(ringmark_functions_callback("other", entered) == 0, "replace");
    run(threads, rounds, "replaced");
    ask("trace stop\ntracer=*", 0, "open=0\n");
    run(threads, rounds, "all off");
    expect(ringmark_functions_request(NULL, NULL, 0) == -1, "no request");
    ask("trace status", 0, "not_called=");
    char answer[8000];
    ringmark_functions_request("trace status", answer, sizeof answer);
    fputs(answer, stdout);
    char cut[9] = "01234567";
    expect(ringmark_functions_request("trace status", cut, 8) == 0 && strlen(cut) == 7, "cut");
    return 0;
}
