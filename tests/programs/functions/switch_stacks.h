// A switch of stacks, written by hand.
#pragma once

// Saves what a function must preserve, and goes on at the other stack.
void switch_stacks(void **from, void *to);
void first_frame(void);
__asm__(".text\n"
        ".type switch_stacks,@function\n"
        "switch_stacks:\n"
        "push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "ret\n"
        ".size switch_stacks,.-switch_stacks\n"
        ".type first_frame,@function\n"
        "first_frame:\n"
        "mov %rbx, %rdi\n"
        "call *%r12\n"
        "ud2\n"
        ".size first_frame,.-first_frame\n");
