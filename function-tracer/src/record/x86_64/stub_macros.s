# Macros of the stubs in call_stubs.rs, which names what stands in braces.

# rax: the type of the site with the number at [rsp + at], which the type replaces.
.macro ringmark_type at
    mov eax, dword ptr [rsp + \at]
    mov rdx, qword ptr [rip + {types}]
    mov eax, dword ptr [rdx + 4 * rax]
    mov qword ptr [rsp + \at], rax
.endm

# rsi: this thread's writer, if its clock is the TSC.
.macro ringmark_writer off
    mov rsi, qword ptr [rip + ringmark_own_thread_block@gottpoff]
    mov rsi, qword ptr fs:[rsi]
    test rsi, rsi
    jz \off
    cmp qword ptr [rsi + {clock}], {tsc}
    jne \off
.endm

# rax: ticks since the page's base, of the counter's value in edx:eax. A reservation has begun;
# so `off` ends it.
.macro ringmark_begin off
    shl rdx, 32
    or rax, rdx
    inc qword ptr [rsi + {begun}]
    sub rax, qword ptr [rsi + {tick_base}]
    mov rdx, rax
    shr rdx, 32
    jnz \off
    mov rcx, qword ptr [rsi + {cursor}]
    prefetchw byte ptr [rcx + 512] # where the 16th call from here writes; never faults
.endm

# Counts a record as lost where the ring is known to be full, as `Writer::reserve_cold` would,
# and ends the reservation; else `off`. It must be the only one under way.
.macro ringmark_lose off
    mov rdx, qword ptr [rsi + {ended}]
    inc rdx
    cmp rdx, qword ptr [rsi + {begun}]
    jne \off
    mov rdx, qword ptr [rsi + {full_consumed}]
    test rdx, rdx
    jz \off
    mov rdx, qword ptr [rdx]
    cmp rdx, qword ptr [rsi + {full_seen}]
    jne \off
    mov qword ptr [rsi + {nested_lost}], 0
    mov rdx, qword ptr [rsi + {full_lost}]
    inc qword ptr [rdx]
    inc qword ptr [rsi + {ended}]
.endm

# A record without payload of the type at [rsp + at]. If it is not that simple, nothing has
# changed and the way goes to `off`.
.macro ringmark_record at, off
    ringmark_writer \off
    rdtsc
    ringmark_begin 97f
    lea rdx, [rcx + 8]
    cmp rdx, qword ptr [rsi + {end}]
    ja 97f
    mov edx, dword ptr [rsp + \at]
    shl rdx, 32
    or rdx, rax
    xor eax, eax
    cmpxchg qword ptr [rcx], rdx # reserves and commits
    jne 98f
    inc qword ptr [rsi + {reservations}]
    add rcx, 8
    mov qword ptr [rsi + {cursor}], rcx
    inc qword ptr [rsi + {ended}]
    jmp 99f
97:
    ringmark_lose 98f
    jmp 99f
98:
    inc qword ptr [rsi + {ended}]
    jmp \off
99:
.endm

# The slow way to \function with \argument.
.macro ringmark_go function, argument:vararg
    lea rdi, [\argument]
    lea rax, [rip + \function]
    call ringmark_slow
.endm

.macro ringmark_label name
    .globl \name
    .hidden \name
\name:
.endm

.macro ringmark_begins name, cfa
    .pushsection .text.\name,"ax",@progbits
    .balign 64
    .type \name,@function
    ringmark_label \name
    .cfi_startproc
    .cfi_def_cfa_offset \cfa
    .cfi_offset rip, -8
.endm

.macro ringmark_ends name
    .cfi_endproc
    .size \name, .-\name
    .popsection
.endm
