// Exceptions through traced functions, and what unwinders find there.
#include "calls.h"
#include <csignal>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static long cleaned;
namespace {
struct cleanup {
    long n;
    TRACED explicit cleanup(long number) : n(number) { COUNT(); }
    TRACED ~cleanup() {
        COUNT();
        cleaned += n;
    }
};
} // namespace

static TRACED int leaf(int n) {
    COUNT();
    return n * 2;
}
static TRACED int thrower(int depth, int what) {
    COUNT();
    cleanup guard(depth);
    if (depth == 0) {
        if (what == 0) throw std::runtime_error("text");
        if (what == 1) throw 42;
        return leaf(7);
    }
    return thrower(depth - 1, what) + leaf(depth);
}
static TRACED int catcher(int depth, int what) {
    COUNT();
    try {
        return thrower(depth, what);
    } catch (const std::runtime_error &error) {
        return (int)std::string(error.what()).size();
    } catch (int number) {
        return leaf(number);
    }
}
static TRACED int rethrower(int depth, int what) {
    COUNT();
    try {
        return depth == 0 ? thrower(3, what) : rethrower(depth - 1, what) + leaf(1);
    } catch (...) {
        leaf(depth);
        throw;
    }
}
static TRACED int catch_rethrown(int depth, int what) {
    COUNT();
    try {
        return rethrower(depth, what);
    } catch (int number) {
        return number;
    } catch (std::exception &) {
        return -1;
    }
}
static TRACED int nested_catch(int depth) {
    COUNT();
    int sum = 0;
    try {
        sum += thrower(depth, 0);
    } catch (std::exception &) {
        try {
            sum += thrower(depth, 1);
        } catch (int) {
            sum += catcher(depth, 1);
        }
    }
    return sum;
}
// A tail call of what throws.
static TRACED int tail_throw(int depth, int what) {
    COUNT();
    return thrower(depth, what);
}
static TRACED int catch_tail(int depth, int what) {
    COUNT();
    try {
        return tail_throw(depth, what) + 1;
    } catch (...) {
        return 1;
    }
}

static TRACED void throw_from_handler(int) {
    COUNT();
    throw 7;
}
static TRACED int raise_deep(int n) {
    COUNT();
    if (n > 0) return INNER(raise_deep(n - 1)) + 1;
    return raise(SIGUSR1);
}
static TRACED int catch_signal(int n) {
    COUNT();
    try {
        return raise_deep(n);
    } catch (int number) {
        return number;
    }
}

// The functions of this program that an unwinder finds, innermost first.
static QUIET void show_callers() {
    void *found[128]; // Of each traced call up to three.
    int count = backtrace(found, 128);
    Dl_info own, info;
    dladdr((void *)show_callers, &own);
    for (int i = 1; i < count; i++) {
        if (dladdr(found[i], &info) && info.dli_fbase == own.dli_fbase)
            printf(" %lx", (unsigned long)found[i] - (unsigned long)info.dli_fbase);
    }
    printf("\n");
}
static TRACED int shows_at(int n) {
    COUNT();
    if (n == 0) show_callers();
    return n == 0 ? 0 : INNER(shows_at(n - 1)) + 1;
}
static TRACED void shows_in_handler(int) {
    COUNT();
    show_callers();
}
static TRACED int tail_shows(int n) {
    COUNT();
    return shows_at(n);
}

namespace {
struct of_thread {
    long n = 3;
    TRACED ~of_thread() {
        COUNT();
        leaf((int)n);
        try {
            thrower(2, 1);
        } catch (int) {
            cleaned++;
        }
    }
};
} // namespace
static thread_local of_thread each;
static TRACED long in_thread(long n) {
    COUNT();
    each.n += n;
    long sum = 0;
    for (int i = 0; i < 20; i++) sum += catcher(i, i % 3);
    return sum;
}
namespace {
struct global {
    TRACED global() { COUNT(); }
    TRACED ~global() {
        COUNT();
        leaf(1);
    }
};
} // namespace
static global before_and_after;

// Not inside the calls that are counted on the main thread's stack: a debugger stops here.
extern "C" TRACED int stop_here(int n) {
    COUNT();
    return n + 1;
}
static TRACED int stops_at(int n) {
    COUNT();
    return n == 0 ? INNER(stop_here(1)) + 1 : INNER(stops_at(n - 1)) + 1;
}

int main() {
    long sum = 0;
    for (int round = 0; round < 3; round++) {
        for (int depth = 0; depth < 30; depth++) {
            for (int what = 0; what < 3; what++) {
                sum += catcher(depth, what) + catch_rethrown(depth % 7, what);
                sum += catch_tail(depth, what) + nested_catch(depth % 5);
            }
        }
    }
    printf("caught %ld cleaned %ld\n", sum, cleaned);
    signal(SIGUSR1, throw_from_handler);
    for (int i = 0; i < 10; i++) {
        sigset_t set;
        sum += catch_signal(i);
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    }
    printf("from handlers %ld\n", sum);
    shows_at(0);
    shows_at(20);
    tail_shows(3);
    signal(SIGUSR2, shows_in_handler);
    raise(SIGUSR2);
    printf("stops %d\n", stops_at(5));
    std::vector<std::thread> threads;
    long sums[4];
    for (int i = 0; i < 4; i++) threads.emplace_back([i, &sums] { sums[i] = in_thread(i); });
    for (auto &thread : threads) thread.join();
    for (long one : sums) sum += one;
    printf("threads %ld\n", sum);
    return 0;
}
