// Fibers of Boost, which a timer switches at any call. Arguments: which part, `fibers`, and how often; it begins when
// standard input ends.
#include "calls.h"
#include <boost/fiber/all.hpp>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/time.h>
#include <vector>

static volatile sig_atomic_t is_due;
static long wrong;

static QUIET void on_timer(int) { is_due = 1; }
static QUIET void switch_if_due() {
    if (!is_due) return;
    is_due = 0;
    boost::this_fiber::yield();
}
static TRACED long leaf(long x) {
    COUNT();
    switch_if_due();
    HIDE(x);
    return x * 3;
}
static TRACED long deep(long n, long x) {
    COUNT();
    long result = n ? INNER(deep(n - 1, x)) + 1 : INNER(leaf(x));
    switch_if_due();
    return result;
}
static TRACED void throws(long n) {
    COUNT();
    switch_if_due();
    if (n == 0) throw n;
    INNER((throws(n - 1), 0));
}
static QUIET void work(long number, long times) {
    for (long i = 0; i < times; i++) {
        if (deep(4 + number, i) != i * 3 + 4 + number) wrong++;
        try {
            throws(number);
            wrong++;
        } catch (long) {
        }
    }
}

int main(int count, char **arguments) {
    expect(count == 3, "two arguments");
    long times = atol(arguments[2]);
    struct pollfd input = {0, POLLIN, 0};
    while (poll(&input, 1, 1) == 0);
    struct sigaction action = {};
    action.sa_handler = on_timer;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, nullptr);
    struct itimerval often = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &often, nullptr);
    std::vector<boost::fibers::fiber> fibers;
    for (long i = 0; i < 8; i++) fibers.emplace_back(work, i, 100 * times);
    for (auto &fiber : fibers) fiber.join();
    printf("fibers: %ld wrong\n", wrong);
    return wrong != 0;
}
