// Runs a program under a seccomp filter, which stays over an exec:
// `filtered container PROGRAM ARGUMENT...`: what a usual container allows; the rest fails with EPERM.
// `filtered only N,N,... PROGRAM ARGUMENT...`: any other system call kills.
// `filtered fails N ERRNO PROGRAM ARGUMENT...`: this call fails. `filtered kills N ...`: it kills.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FAIL(error) (SECCOMP_RET_ERRNO | (error))

static struct sock_filter filter[4096];
static unsigned short count;

static void add(unsigned short code, unsigned char yes, unsigned char no, unsigned k) {
    filter[count++] = (struct sock_filter){code, yes, no, k};
}

static void load(unsigned offset) { add(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset); }

static void answer(unsigned value) { add(BPF_RET | BPF_K, 0, 0, value); }

static void answer_to(unsigned number, unsigned value) {
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, number);
    answer(value);
}

// What administers the machine or other processes, is obsolete, or leads out of the container.
static const unsigned refused[] = {
    SYS_acct, SYS_add_key, SYS_bpf, SYS_clock_adjtime, SYS_clock_settime, SYS_create_module,
    SYS_delete_module, SYS_finit_module, SYS_get_kernel_syms, SYS_get_mempolicy, SYS_init_module,
    SYS_ioperm, SYS_iopl, SYS_kcmp, SYS_kexec_load, SYS_keyctl, SYS_lookup_dcookie, SYS_mbind,
    SYS_mount, SYS_move_pages, SYS_name_to_handle_at, SYS_nfsservctl, SYS_open_by_handle_at,
    SYS_perf_event_open, SYS_personality, SYS_pivot_root, SYS_ptrace, SYS_query_module,
    SYS_quotactl, SYS_reboot, SYS_request_key, SYS_set_mempolicy, SYS_setns, SYS_settimeofday,
    SYS_swapon, SYS_swapoff, SYS_sysfs, SYS__sysctl, SYS_umount2, SYS_unshare, SYS_uselib,
    SYS_userfaultfd, SYS_ustat, SYS_vhangup, 425, 426, 427, 428, 429, 430, 431, 432, 433, 442,
};

static void container(void) {
    // No namespaces: the flags are looked at. clone3 has them in memory, where no filter looks.
    const unsigned namespaces = 0x7e020000;
    add(BPF_JMP | BPF_JEQ | BPF_K, 0, 4, SYS_clone);
    load(offsetof(struct seccomp_data, args[0]));
    add(BPF_JMP | BPF_JSET | BPF_K, 0, 1, namespaces);
    answer(FAIL(EPERM));
    answer(SECCOMP_RET_ALLOW);
    answer_to(SYS_clone3, FAIL(ENOSYS));
    for (unsigned number = 0; number <= 450; number++) {
        int is_refused = number > 334 && number < 424;
        for (unsigned i = 0; i < sizeof refused / sizeof *refused; i++)
            is_refused |= number == refused[i];
        if (!is_refused) answer_to(number, SECCOMP_RET_ALLOW);
    }
    answer(FAIL(EPERM));
}

static void only(char *numbers) {
    for (char *word = strtok(numbers, ","); word; word = strtok(0, ","))
        answer_to(atoi(word), SECCOMP_RET_ALLOW);
    answer(SECCOMP_RET_KILL_PROCESS);
}

int main(int arguments, char **argument) {
    if (arguments < 3) return 2;
    char **program = argument + 3;
    load(offsetof(struct seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, 1, 0, AUDIT_ARCH_X86_64);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(struct seccomp_data, nr));
    if (!strcmp(argument[1], "container")) {
        program = argument + 2;
        container();
    } else if (!strcmp(argument[1], "only")) {
        only(argument[2]);
    } else {
        int kills = !strcmp(argument[1], "kills");
        answer_to(atoi(argument[2]), kills ? SECCOMP_RET_KILL_PROCESS : FAIL(atoi(argument[3])));
        answer(SECCOMP_RET_ALLOW);
        program += !kills;
    }
    struct sock_fprog whole = {count, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole)) {
        perror("filtered");
        return 3;
    }
    execv(program[0], program);
    perror(program[0]);
    return 3;
}
