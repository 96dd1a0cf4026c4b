# As many functions as FUNCTIONS says, and one that calls each of them.
    .altmacro
    .macro one number
    .globl function_\number
    .type function_\number, @function
function_\number:
    .cfi_startproc
1:  nop
    nop
    nop
    nop
    nop
    lea 1(%rdi), %rax
    ret
    .cfi_endproc
    .size function_\number, . - function_\number
    .section __patchable_function_entries, "awo", @progbits, .text
    .balign 8
    .quad 1b
    .text
    .endm
    .macro one_call number
    call function_\number
    .endm

    .text
    .set number, 0
    .rept FUNCTIONS
    one %number
    .set number, number + 1
    .endr

    .globl call_all
    .type call_all, @function
call_all:
    .cfi_startproc
    sub $8, %rsp
    .cfi_def_cfa_offset 16
    .set number, 0
    .rept FUNCTIONS
    one_call %number
    .set number, number + 1
    .endr
    add $8, %rsp
    .cfi_def_cfa_offset 8
    ret
    .cfi_endproc
    .size call_all, . - call_all
    .section .note.GNU-stack, "", @progbits
