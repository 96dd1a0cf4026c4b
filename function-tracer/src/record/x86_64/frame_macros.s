# Macros of all stubs. A signal may come at any instruction, and its handler may unwind: so each change of rsp has its
# line of the unwind table at once. Several files include them, which may be one file for the assembler.
.ifndef ringmark_frame_macros
.set ringmark_frame_macros, 1

.macro ringmark_save registers:vararg
    .irp register, \registers
    push \register
    .cfi_adjust_cfa_offset 8
    .endr
.endm

.macro ringmark_load registers:vararg
    .irp register, \registers
    pop \register
    .cfi_adjust_cfa_offset -8
    .endr
.endm

.macro ringmark_push
    ringmark_save rax, rcx, rdx, rsi, rdi
.endm

.macro ringmark_pop
    ringmark_load rdi, rsi, rdx, rcx, rax
.endm

# Drops the innermost word, without a change of flags.
.macro ringmark_drop
    lea rsp, [rsp + 8]
    .cfi_adjust_cfa_offset -8
.endm

.endif
