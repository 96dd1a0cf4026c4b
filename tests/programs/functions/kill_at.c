// `kill_at N COMMAND...`: runs a command and kills it (SIGKILL) when it enters its N-th system call, all
// its threads counted together. Exits with 137 then, else as the command; says on standard error
// "call NUMBER" of the call that was not made, or "calls COUNT".
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char *what) {
    perror(what);
    _exit(99);
}

// Whether the thread is at the entry of a call, and of which.
static int enters(pid_t thread, unsigned long long *number) {
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, (void *)sizeof info, &info) <= 0) return 0;
    *number = info.entry.nr;
    return info.op == PTRACE_SYSCALL_INFO_ENTRY;
}

int main(int count, char **arguments) {
    if (count < 3) return 2;
    long last = atol(arguments[1]), calls = 0;
    pid_t tool = fork();
    if (tool == 0) {
        raise(SIGSTOP);
        execvp(arguments[2], arguments + 2);
        fail(arguments[2]);
    }
    int status;
    if (waitpid(tool, &status, WUNTRACED) != tool) fail("waitpid");
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, tool, 0, (void *)options)) fail("ptrace");
    kill(tool, SIGCONT);
    int runs = 0;
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) fail("waitpid");
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread != tool) continue;
            if (WIFEXITED(status)) fprintf(stderr, "calls %ld\n", calls);
            return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        }
        int signal = WSTOPSIG(status), event = status >> 16;
        unsigned long long number;
        runs |= event == PTRACE_EVENT_EXEC;
        if (signal == (SIGTRAP | 0x80)) {
            if (runs && enters(thread, &number) && ++calls == last) {
                fprintf(stderr, "call %llu\n", number);
                kill(tool, SIGKILL);
                continue;
            }
            signal = 0;
        } else if (event) {
            signal = 0;
        }
        // One that was killed since then says so itself.
        ptrace(PTRACE_SYSCALL, thread, 0, (void *)(long)signal);
    }
}
