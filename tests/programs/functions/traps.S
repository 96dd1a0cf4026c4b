// Functions whose first bytes must not be moved, one for each reason, and some whose first bytes can be.
        .intel_syntax noprefix
        .macro begin name
        .balign 16
        .globl \name
        .type \name, @function
\name:
        .cfi_startproc
        .endm
        .macro end name
        .cfi_endproc
        .size \name, . - \name
        .endm

        .text
        begin one_store
        mov eax, 1
        ret
        end one_store

        begin one_store_of_a_return
        ret
        end one_store_of_a_return
        .balign 16

        begin hop
        test edi, edi
        je 1f
        inc eax
1:      ret
        end hop

        begin several
        push rbp
        mov rbp, rsp
        xor eax, eax
        pop rbp
        ret
        end several

        begin flags_of_its_own
        push rbx
        cmp edi, 1
        sete al
        pop rbx
        ret
        end flags_of_its_own

        begin calls_last
        push rbx
        call one_store
        pop rbx
        ret
        end calls_last

        begin jumped_into
        push rbx
jumped: mov eax, edi
        inc eax
        pop rbx
        ret
        end jumped_into
        begin jumps
        mov eax, edi
        jmp jumped
        end jumps

        begin called_into
        push rbx
called: mov eax, edi
        inc eax
        pop rbx
        ret
        end called_into
        begin calls
        push rbx
        nop
        mov eax, 1
        call called
        pop rbx
        ret
        end calls

        begin table_into
        push rbx
by_table:
        mov eax, edi
        lea rdx, [rip + table]
        movsxd rax, dword ptr [rdx + 4 * rax]
        add rax, rdx
        jmp rax
        end table_into

        begin pointed_into
        push rbx
pointed:
        mov eax, edi
        inc eax
        pop rbx
        ret
        end pointed_into

        begin computed_into
        push rbx
computed:
        mov eax, edi
        lea rdx, [rip + computed]
        pop rbx
        ret
        end computed_into

        begin symbol_into
        push rbx
        .globl inner_symbol
inner_symbol:
        mov eax, edi
        inc eax
        pop rbx
        ret
        end symbol_into

        // As GCC has labels as values with distances between them: they count from another label.
        begin distances_from_a_label
        push rbx
2:      mov rax, rdi
        lea rdx, [rip + 3f]
        movsxd rcx, dword ptr [rip + distances]
        add rdx, rcx
        jmp rdx
3:      ret
        .pushsection .rodata
        .balign 4
distances:
        .long 2b - 3b
        .popsection
        end distances_from_a_label

        begin loops
        sub edi, 1
        jne loops
        ret
        end loops

        begin call_inside
        push rbx
        call rax
        inc eax
        pop rbx
        ret
        end call_inside

        begin call_fixed
        push rbx
        call qword ptr [rip + pointer]
        pop rbx
        ret
        end call_fixed

        begin transaction
        xbegin 1f
        xend
1:      ret
        end transaction

        begin traps
        int3
        mov eax, 1
        ret
        end traps

        begin reads_flags
        adc eax, edi
        inc eax
        ret
        end reads_flags

        begin pops
        pop rax
        push rax
        inc eax
        ret
        end pops

        begin short_jump
        cld
        jrcxz 1f
        inc eax
1:      ret
        end short_jump

        begin undefined
        .byte 0x06
        mov eax, 1
        ret
        end undefined

        // No padding follows it.
        .balign 16
        .globl too_short
        .type too_short, @function
too_short:
        .cfi_startproc
        cld
        ret
        end too_short
        .globl behind
        .type behind, @function
behind: .cfi_startproc
        mov eax, 2
        ret
        end behind

        .balign 16
        .globl no_frame
        .type no_frame, @function
no_frame:
        mov eax, 1
        ret
        .size no_frame, . - no_frame

        begin not_called
        .cfi_def_cfa_offset 16
        mov eax, 1
        ret
        end not_called

        begin of_a_signal
        .cfi_signal_frame
        mov eax, 1
        ret
        end of_a_signal

        begin outermost
        .cfi_undefined rip
        mov eax, 1
        ret
        end outermost

        begin outer
        mov eax, 1
        .globl inside
        .type inside, @function
inside: mov eax, 2
        ret
        .size inside, . - inside
        end outer

        begin part.cold
        mov eax, 1
        ret
        end part.cold

        .balign 16
        .globl resolver
        .type resolver, @gnu_indirect_function
resolver:
        .cfi_startproc
        mov eax, 1
        ret
        end resolver

        begin relocated
        movabs rax, offset words
        ret
        end relocated

        begin SafeFetch32
        mov eax, dword ptr [rdi + 0x100]
        ret
        end SafeFetch32

        begin restartable
        mov eax, 1
        nop
restart_end:
        ret
        end restartable

        begin reads_return_address
        mov eax, 1
        mov rdx, qword ptr [rsp]
        mov qword ptr [rdi], rdx
        ret
        end reads_return_address

        begin jumps_to_a_reader
        mov eax, 1
        jmp reads_return_address
        end jumps_to_a_reader

        .section .writable, "awx", @progbits
        begin writable
        mov eax, 1
        ret
        end writable

        .section .rodata
        .balign 4
table:  .long by_table - table, by_table - table

        .data
        .balign 8
pointer:
        .quad one_store
        .quad pointed
words:  .quad 1

        .section __rseq_cs, "aw", @progbits
        .balign 32
        .long 0, 0
        .quad restartable, restart_end - restartable, one_store
        .section .note.GNU-stack, "", @progbits
