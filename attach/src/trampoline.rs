//! The code that one thread of the target runs once. It keeps every register, blocks all signals,
//! takes a stack of its own, calls `dlopen`, waits a moment for its results to be fetched, and
//! goes back to where the thread was. Nothing of this needs the tool to be alive.

use std::arch::global_asm;

/// Bytes below the thread's stack pointer that the code leaves alone, mailbox included.
const BELOW: u64 = 256;
/// First bytes of the code; the next word is its length.
pub(crate) const MAGIC: [u8; 8] = *b"RINGMARK";

global_asm!(
    ".pushsection .rodata.ringmark_attach, \"a\"",
    ".balign 16",
    ".globl ringmark_attach_begin",
    ".hidden ringmark_attach_begin",
    "ringmark_attach_begin:",
    ".ascii \"RINGMARK\"",
    ".quad 0",
    // Behind the red zone: the mailbox, then everything the thread had.
    "lea rsp, [rsp - 256]",
    "pushfq",
    "push rax; push rcx; push rdx; push rbx; push rbp; push rsi; push rdi",
    "push r8; push r9; push r10; push r11; push r12; push r13; push r14; push r15",
    "cld",
    "lea rbx, [rsp + 128]",
    "mov rbp, rsp",
    "xor eax, eax",
    "mov [rbx + 8], rax; mov [rbx + 16], rax; mov [rbx + 24], rax; mov [rbx + 32], rax",
    "mov [rbx + 48], rax; mov [rbx + 56], rax; mov [rbx + 72], rax",
    "mov qword ptr [rbx + 64], -1",
    "mov rax, [rip + 20f]",
    "mov [rbx], rax",
    // rt_sigprocmask(SIG_SETMASK, all, &old, 8): no handler runs on the stack below.
    "mov eax, 14; mov edi, 2; lea rsi, [rip + 30f]; lea rdx, [rbx + 40]; mov r10d, 8",
    "syscall",
    // mmap(0, 512 KiB, read and write, private and anonymous, -1, 0)
    "mov eax, 9; xor edi, edi; mov esi, 0x80000; mov edx, 3; mov r10d, 0x22",
    "mov r8, -1; xor r9d, r9d",
    "syscall",
    "mov r12, rax",
    "cmp rax, -4096",
    "ja 5f",
    // The upper 64 KiB take the vector registers, the rest is the stack.
    "lea rsp, [r12 + 0x70000]",
    "mov eax, -1; mov edx, -1",
    "xsave64 [r12 + 0x70000]",
    "fninit",
    "ldmxcsr [rip + 31f]",
    "call [rip + 24f]",
    "mov r13, rax",
    "mov r14d, [rax]",
    "mov edi, 1; lea rsi, [rbx + 48]",
    "call [rip + 25f]",
    "cmp qword ptr [rip + 38f], 0",
    "je 43f",
    // memfd_create(name, MFD_CLOEXEC). The tool fills it; lseek(fd, 0, SEEK_END) tells how far it is.
    // A tool that does nothing for about a second has been killed.
    "mov eax, 319; mov rdi, [rip + 37f]; mov esi, 1",
    "syscall",
    "cmp rax, -4096",
    "ja 42f",
    "mov [rbx + 64], rax",
    "mov qword ptr [rbx + 8], 1",
    "40: mov r15d, 10000",
    "41: mov eax, 8; mov rdi, [rbx + 64]; xor esi, esi; mov edx, 2",
    "syscall",
    "cmp rax, [rip + 38f]",
    "je 43f",
    "cmp rax, -4096",
    "ja 42f",
    "cmp rax, [rbx + 72]",
    "mov [rbx + 72], rax",
    "jne 40b",
    "mov rax, -110",
    "dec r15d",
    "js 42f",
    "mov eax, 271; xor edi, edi; xor esi, esi; lea rdx, [rip + 32f]; xor r10d, r10d",
    "mov r8d, 8",
    "syscall",
    "jmp 41b",
    "42: mov [rbx + 24], rax",
    "jmp 4f",
    "43: mov rdi, [rip + 26f]; mov esi, 2",
    "call [rip + 21f]",
    "mov [rbx + 16], rax",
    "test rax, rax",
    "jz 3f",
    "mov rsi, [rip + 27f]",
    "test rsi, rsi",
    "jz 4f",
    "mov rdi, rax",
    "call [rip + 22f]",
    "test rax, rax",
    "jz 3f",
    "mov rdi, [rip + 28f]",
    "call rax",
    "cdqe",
    "mov [rbx + 24], rax",
    "jmp 4f",
    "3: call [rip + 23f]",
    "mov [rbx + 32], rax",
    "4: mov rdi, [rbx + 64]",
    "test rdi, rdi",
    "js 44f",
    "mov eax, 3",
    "syscall",
    "44: mov edi, [rbx + 48]; xor esi, esi",
    "call [rip + 25f]",
    "mov [r13], r14d",
    "mov eax, -1; mov edx, -1",
    "xrstor64 [r12 + 0x70000]",
    "mov rsp, rbp",
    "jmp 6f",
    "5: mov [rbx + 24], r12",
    "xor r12d, r12d",
    // Done. Some 200 ms for the tool to fetch what there is: ppoll(0, 0, 50 us, 0, 8), which
    // leaves a restart block of the thread as it is.
    "6: mov qword ptr [rbx + 8], 2",
    "mov r15d, 2000",
    "7: cmp qword ptr [rbx + 56], 0",
    "jne 8f",
    "dec r15d",
    "js 8f",
    "mov eax, 271; xor edi, edi; xor esi, esi; lea rdx, [rip + 32f]; xor r10d, r10d",
    "mov r8d, 8",
    "syscall",
    "jmp 7b",
    "8: test r12, r12",
    "jz 9f",
    "mov eax, 11; mov rdi, r12; mov esi, 0x80000",
    "syscall",
    "9: mov qword ptr [rbx], 0",
    "mov eax, 14; mov edi, 2; lea rsi, [rbx + 40]; xor edx, edx; mov r10d, 8",
    "syscall",
    "pop r15; pop r14; pop r13; pop r12; pop r11; pop r10; pop r9; pop r8",
    "pop rdi; pop rsi; pop rbp; pop rbx; pop rdx; pop rcx; pop rax",
    "popfq",
    "lea rsp, [rsp + 256]",
    "jmp [rip + 29f]",
    ".balign 8",
    "30: .quad -1",
    "32: .quad 0, 50000",
    "31: .long 0x1f80, 0",
    // What `Code` fills in.
    ".globl ringmark_attach_blanks",
    ".hidden ringmark_attach_blanks",
    "ringmark_attach_blanks:",
    "20: .quad 0",
    "21: .quad 0",
    "22: .quad 0",
    "23: .quad 0",
    "24: .quad 0",
    "25: .quad 0",
    "26: .quad 0",
    "27: .quad 0",
    "28: .quad 0",
    "29: .quad 0",
    "37: .quad 0",
    "38: .quad 0",
    ".globl ringmark_attach_end",
    ".hidden ringmark_attach_end",
    "ringmark_attach_end:",
    ".popsection",
);

unsafe extern "C" {
    static ringmark_attach_begin: u8;
    static ringmark_attach_blanks: u8;
    static ringmark_attach_end: u8;
}

/// Offset of the first instruction.
pub(crate) const ENTRY: u64 = 16;

/// Functions of the target's C library.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Functions {
    pub(crate) dlopen: u64,
    pub(crate) dlsym: u64,
    pub(crate) dlerror: u64,
    pub(crate) errno_location: u64,
    pub(crate) setcancelstate: u64,
}

/// Where the loader finds the library.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Library<'a> {
    /// At this path.
    At(&'a [u8]),
    /// In a memfd of this name and length that the code makes and the tool fills.
    Copied(&'a [u8], u64),
}

/// Where a thread finds its descriptors. No one else spells it so, and the loader tells libraries
/// first by the path that they were opened by.
const DESCRIPTORS: &[u8] = b"/proc/thread-self/fd/";
/// Digits of a descriptor.
const DIGITS: &[u8] = b"0000000000";

/// What the code works on.
#[derive(Debug, Clone)]
pub(crate) struct Work<'a> {
    pub(crate) functions: Functions,
    /// Tells this run from all others.
    pub(crate) nonce: u64,
    pub(crate) library: Library<'a>,
    /// A function of it and its argument.
    pub(crate) call: Option<(&'a [u8], &'a [u8])>,
}

/// The mailbox, as it was found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mailbox {
    pub(crate) has_begun: bool,
    pub(crate) is_done: bool,
    /// What `dlopen` returned.
    pub(crate) handle: u64,
    /// What the function returned, or the error of `mmap`.
    pub(crate) result: i64,
    /// The loader's words.
    pub(crate) message: u64,
    /// A memfd that waits for the library's bytes.
    pub(crate) empty: Option<u64>,
}

/// Words of the mailbox.
pub(crate) const MAILBOX_WORDS: usize = 9;
/// The word that tells the code that its results were fetched.
pub(crate) const FETCHED: u64 = 56;

/// Where the mailbox of a thread is that enters the code with this stack pointer.
pub(crate) fn mailbox(stack_pointer: u64) -> u64 {
    stack_pointer.wrapping_sub(BELOW)
}

impl Mailbox {
    pub(crate) fn of(words: [u64; MAILBOX_WORDS], nonce: u64) -> Self {
        let [found, phase, handle, result, message, _, _, _, fd] = words;
        if found != nonce {
            return Self::default();
        }
        Self {
            has_begun: true,
            is_done: phase == 2,
            handle,
            result: result.cast_signed(),
            message,
            empty: (phase == 1).then_some(fd),
        }
    }
}

impl Work<'_> {
    /// The loader's path of the library. A copy's descriptor is not known yet.
    fn path(&self) -> Vec<u8> {
        match self.library {
            Library::At(path) => path.to_vec(),
            Library::Copied(..) => [DESCRIPTORS, DIGITS].concat(),
        }
    }
}

/// Where code at `at` has the digits of a copy's descriptor, and what belongs there for `fd`.
pub(crate) fn descriptor(at: u64, fd: u64) -> (u64, Vec<u8>) {
    let place = at + template().0.len() as u64 + DESCRIPTORS.len() as u64;
    (place, format!("{fd}\0").into_bytes())
}

fn template() -> (&'static [u8], usize) {
    let begin = &raw const ringmark_attach_begin;
    let blanks = &raw const ringmark_attach_blanks;
    let length = (&raw const ringmark_attach_end).addr() - begin.addr();
    // SAFETY: the bytes between the two symbols are data of this program that no thread writes.
    let bytes = unsafe { std::slice::from_raw_parts(begin, length) };
    (bytes, blanks.addr() - begin.addr())
}

/// Bytes that the code and its strings take, a multiple of 16.
pub(crate) fn length(work: &Work<'_>) -> usize {
    let (symbol, argument) = work.call.unwrap_or_default();
    let name = match work.library {
        Library::At(_) => &b""[..],
        Library::Copied(name, _) => name,
    };
    let strings = work.path().len() + symbol.len() + argument.len() + name.len() + 4;
    (template().0.len() + strings).next_multiple_of(16)
}

/// The bytes to put at `at`, whose last instruction goes to `resume`.
pub(crate) fn code(work: &Work<'_>, at: u64, resume: u64) -> Vec<u8> {
    let (template, blanks) = template();
    let mut bytes = template.to_vec();
    let mut place = |text: &[u8]| {
        let place = at + bytes.len() as u64;
        bytes.extend_from_slice(text);
        bytes.push(0);
        place
    };
    let path = place(&work.path());
    let (symbol, argument) = match work.call {
        Some((symbol, argument)) => (place(symbol), place(argument)),
        None => (0, 0),
    };
    let (name, size) = match work.library {
        Library::At(_) => (0, 0),
        Library::Copied(name, size) => (place(name), size),
    };
    bytes.resize(length(work), 0);
    let functions = work.functions;
    let words = [
        work.nonce,
        functions.dlopen,
        functions.dlsym,
        functions.dlerror,
        functions.errno_location,
        functions.setcancelstate,
        path,
        symbol,
        argument,
        resume,
        name,
        size,
    ];
    for (number, word) in words.iter().enumerate() {
        let from = blanks + number * 8;
        bytes[from..from + 8].copy_from_slice(&word.to_le_bytes());
    }
    let length = (bytes.len() as u64).to_le_bytes();
    bytes[8..16].copy_from_slice(&length);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_filled_in() {
        let functions = Functions {
            dlopen: 1,
            dlsym: 2,
            dlerror: 3,
            errno_location: 4,
            setcancelstate: 5,
        };
        let work = Work {
            functions,
            nonce: 7,
            library: Library::At(b"/x.so"),
            call: Some((b"start", b"a=1")),
        };
        let bytes = code(&work, 0x1000, 0x5555);
        assert_eq!(bytes.len(), length(&work));
        assert_eq!(bytes[..8], MAGIC);
        assert!(bytes.len() < 850, "{}", bytes.len());
        let (template, blanks) = template();
        let word = |number: usize| {
            let from = blanks + number * 8;
            u64::from_le_bytes(bytes[from..from + 8].try_into().unwrap())
        };
        assert_eq!([word(0), word(1), word(9)], [7, 1, 0x5555]);
        assert_eq!(word(6), 0x1000 + template.len() as u64);
        assert_eq!(bytes[(word(7) - 0x1000) as usize..][..6], *b"start\0");
        assert_eq!([word(10), word(11)], [0, 0]);
        let copied = Work {
            library: Library::Copied(b"x.so", 77),
            ..work
        };
        let bytes = code(&copied, 0x1000, 0x5555);
        let word = |number: usize| {
            let from = blanks + number * 8;
            u64::from_le_bytes(bytes[from..from + 8].try_into().unwrap())
        };
        assert_eq!(word(11), 77);
        assert_eq!(bytes[(word(10) - 0x1000) as usize..][..5], *b"x.so\0");
        let (place, digits) = descriptor(0x1000, 12);
        let path = &bytes[(word(6) - 0x1000) as usize..(place - 0x1000) as usize];
        assert_eq!([path, &digits].concat(), *b"/proc/thread-self/fd/12\0");
        assert!(
            digits.len() < DIGITS.len() && bytes.len() < 950,
            "{}",
            bytes.len()
        );
    }
}
