/* A shop that is slow for two reasons: a clerk who keeps the lock of the till while it waits for a reply, and a baker who
   works all the time. It closes after some seconds. */
#include <pthread.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t till = PTHREAD_MUTEX_INITIALIZER;
static int bank[2];
static volatile unsigned long bread;

static void rest(long ms) {
    struct timespec time = {0, ms * 1000000};
    nanosleep(&time, NULL);
}

__attribute__((noinline)) static char ask_bank(void) {
    char reply = 0;
    return read(bank[0], &reply, 1) == 1 ? reply : 0;
}

__attribute__((noinline)) static void close_day(void) {
    pthread_mutex_lock(&till);
    bread += ask_bank();
    pthread_mutex_unlock(&till);
}

__attribute__((noinline)) static void sell(void) {
    pthread_mutex_lock(&till);
    bread -= 1;
    pthread_mutex_unlock(&till);
}

__attribute__((noinline)) static void knead(void) {
    for (int i = 0; i < 30000000; i++)
        bread += i;
}

__attribute__((noinline)) static void bake(void) {
    for (int i = 0; i < 10000000; i++)
        bread ^= i;
}

static void *clerk(void *unused) {
    prctl(PR_SET_NAME, "clerk");
    for (;;) {
        close_day();
        rest(1);
    }
    return unused;
}

static void *seller(void *unused) {
    prctl(PR_SET_NAME, "seller");
    for (;;) {
        sell();
        rest(1);
    }
    return unused;
}

static void *baker(void *unused) {
    prctl(PR_SET_NAME, "baker");
    for (;;) {
        knead();
        bake();
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pipe(bank))
        return 1;
    pthread_create(&thread, NULL, clerk, NULL);
    pthread_create(&thread, NULL, seller, NULL);
    pthread_create(&thread, NULL, baker, NULL);
    for (int reply = 0; reply < 20; reply++) {
        rest(300);
        if (write(bank[1], "", 1) != 1)
            return 1;
    }
    return 0;
}
