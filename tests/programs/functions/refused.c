/* Functions that cannot be traced, each for its own reason, and some that can. */
#include "tracer.h"

__attribute__((patchable_function_entry(3, 0), noinline)) void few(void) { __asm__(""); }
__attribute__((patchable_function_entry(7, 3), noinline)) void few_behind(void) { __asm__(""); }
__attribute__((patchable_function_entry(16, 8), noinline)) void both_sides(void) { __asm__(""); }
__attribute__((patchable_function_entry(5, 0), noinline)) void plain(void) { __asm__(""); }
__attribute__((noinline)) void without(void) { __asm__(""); }
void broken(void), changed(void), outside(void);

#define BY_HAND(name, bytes) \
    __asm__(".text\n.type " #name ", @function\n" #name ":\n.byte " bytes "\nret\n.size " #name ", . - " #name "\n" \
            ".pushsection __patchable_function_entries, \"aw\", @progbits\n.quad " #name "\n.popsection\n")
BY_HAND(broken, "0x66, 0x90, 0x0f, 0x1f, 0x00");
BY_HAND(changed, "0xcc, 0x1f, 0x44, 0x00, 0x00");
__asm__(".pushsection __patchable_function_entries, \"aw\", @progbits\n.quad changed + 1\n.quad outside_of_code\n.popsection\n"
        ".data\noutside_of_code: .quad 0\n.text\n");

static void print_one(void *argument, const struct ringmark_site *site) {
    (void)argument;
    printf("%s%s %s\n", site->reason ? "no " : "yes ", *site->symbol ? site->symbol : "-",
           site->reason ? site->reason : "");
}

int main(void) {
    static struct selection all;
    load_tracer();
    scan(1);
    list(print_one, NULL);
    select_sites(&all, "", 0);
    size_t done = switch_sites(all.ids, all.count, count_entry);
    few(), few_behind(), both_sides(), plain(), without();
    printf("switched %zu\ncounted %llu\n", done, (unsigned long long)sum_counts(&all));
    return 0;
}
