/* A program with a getpid of its own, called from three threads. */
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static long right;

__attribute__((noinline)) pid_t getpid(void) { return (pid_t)syscall(SYS_getpid); }

__attribute__((noinline)) void *thread(void *parent) {
    for (int i = 0; i < 1000; i++) {
        long is_right = getpid() == *(pid_t *)parent;
        __atomic_fetch_add(&right, is_right, __ATOMIC_RELAXED);
    }
    return 0;
}

int main(void) {
    pid_t own = (pid_t)syscall(SYS_getpid);
    pthread_t one, other;
    pthread_create(&one, 0, thread, &own);
    pthread_create(&other, 0, thread, &own);
    for (int i = 0; i < 1000; i++)
        right += getpid() == own;
    pthread_join(one, 0);
    pthread_join(other, 0);
    printf("%ld\n", right);
    return 0;
}
