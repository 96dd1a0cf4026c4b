/* Linked to a program that root starts: it becomes another user without executing anything, as servers do. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void become_nobody(void) {
    if (setgid(65534) || setuid(65534)) {
        perror("other_user");
        exit(3);
    }
}
