// fork, vfork and exec in the middle of calls.
#include "calls.h"
#include <stdlib.h>
#include <sys/wait.h>

static TRACED long work(long n) {
    COUNT();
    return n < 2 ? n : work(n - 1) + INNER(work(n - 2));
}
static QUIET int wait_for(pid_t child) {
    int status = 0;
    expect(waitpid(child, &status, 0) == child, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}
// Returns in both processes, out of calls that were entered before.
static TRACED pid_t fork_at(int n) {
    COUNT();
    if (n > 0) {
        pid_t child = fork_at(n - 1);
        work(2);
        return child;
    }
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) forget_calls();
    return child;
}
static TRACED int in_child(int n) {
    COUNT();
    return (int)work(n);
}
static TRACED int forks(int depth) {
    COUNT();
    pid_t child = fork_at(depth);
    if (child == 0) exit(in_child(6));
    return wait_for(child);
}
static TRACED void before_exec(int n) {
    COUNT();
    work(n);
}
static TRACED int vforks(int depth, const char *program) {
    COUNT();
    if (depth > 0) return INNER(vforks(depth - 1, program));
    pid_t child = vfork();
    if (child == 0) {
        before_exec(3);
        execl(program, program, "child", NULL);
        _exit(96);
    }
    work(4);
    return wait_for(child);
}
static TRACED int vforks_and_ends(int depth) {
    COUNT();
    if (depth > 0) return INNER(vforks_and_ends(depth - 1));
    pid_t child = vfork();
    if (child == 0) {
        before_exec(2);
        _exit(7);
    }
    work(4);
    return wait_for(child);
}

int main(int count, char **arguments) {
    if (count > 1) return (int)work(5);
    for (int i = 0; i < 3; i++) {
        printf("fork %d\n", forks(i * 5));
        printf("vfork %d %d\n", vforks(i, arguments[0]), vforks_and_ends(i));
    }
    return 0;
}
