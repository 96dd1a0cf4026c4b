/* Spans in every form of ringmark.h, for a test that stops the program at each instruction:
 *
 *     span_steps FORM DEPTH HANDLER LEDGER
 *
 * FORM: begin, scope, claim (each time in a new thread), ring (the thread changes its ring). DEPTH spans
 * are open before. A handler nests, ends its spans in the wrong order (crosses), or jumps out. The
 * ledger, a file, says for each span what the program knows of it; it goes on until word 511 is set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

#define RINGMARK_TARGET "span_steps"
#include <ringmark.h>

RINGMARK_SPAN(step, "step.span", (u64, id));

/* As the test knows them. LEFT: by a jump, or without a ring: it may be there. */
enum { NONE, BEGINS, OPEN, ENDS, ENDED, LEFT };
enum { A = 64, B, C, D, J, O, SPANS };

struct entry {
    volatile uint64_t state;
    volatile uint64_t key; /* in its frame: the first argument, else the tick; 0: not known */
    volatile uint64_t id;  /* in its record */
};

static struct {
    volatile uint64_t rounds;
    volatile uint64_t in_handler;
    volatile uint64_t unknown; /* spans that a jump left while they began or ended */
    volatile uint64_t over_left; /* spans that it left, which may be beyond the frames */
    struct entry entries[SPANS];
} * ledger;

static uint64_t next_id;
static struct ringmark_span spans[SPANS];
static sigjmp_buf jump;
static const char *form, *what;
static int is_scope;
static volatile int may_jump;

#define SAY(place, to)                                                                                 \
    do {                                                                                               \
        __asm__ volatile("" ::: "memory");                                                             \
        (place) = (to);                                                                                \
        __asm__ volatile("" ::: "memory");                                                             \
    } while (0)

static uint64_t new_id(void) { return 0xA5ULL << 56 | __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED); }

/* A new span takes the entry of one that has ended. */
static struct entry *new_entry(int span) {
    struct entry *const it = &ledger->entries[span];
    SAY(it->state, NONE);
    it->id = new_id();
    it->key = is_scope ? it->id : 0;
    return it;
}

static void begin(int span) {
    struct entry *const it = new_entry(span);
    it->key = 0;
    SAY(it->state, BEGINS);
    spans[span] = ringmark_begin(step);
    SAY(it->key, spans[span].start);
    SAY(it->state, spans[span].frame != NULL ? OPEN : LEFT);
}

static void end(int span) {
    struct entry *const it = &ledger->entries[span];
    SAY(it->state, ENDS);
    ringmark_end(step, spans[span], it->id);
    SAY(it->state, ENDED);
}

/* Two spans, one in the other. */
static __attribute__((noinline)) void nested(int outer, int inner) {
    if (!is_scope) {
        begin(outer);
        begin(inner);
        end(inner);
        end(outer);
        return;
    }
    struct entry *const one = new_entry(outer), *const two = new_entry(inner);
    SAY(one->state, BEGINS);
    {
        RINGMARK_SCOPE(step, one->id);
        SAY(one->state, OPEN);
        SAY(two->state, BEGINS);
        {
            RINGMARK_SCOPE(step, two->id);
            SAY(two->state, OPEN);
            SAY(two->state, ENDS);
        }
        SAY(two->state, ENDED);
        SAY(one->state, ENDS);
    }
    SAY(one->state, ENDED);
}

/* The lower one ends first. */
static void crossed(int outer, int inner) {
    begin(outer);
    begin(inner);
    end(outer);
    end(inner);
}

/* Leaves the spans of the interrupted context, and one of its own. */
static void jump_out(void) {
    begin(J);
    for (int span = A; span <= J; ++span) {
        struct entry *const it = &ledger->entries[span];
        if (it->state == BEGINS || it->state == OPEN || it->state == ENDS) {
            ++ledger->over_left;
            ledger->unknown += it->state != OPEN;
            it->state = it->state == OPEN ? LEFT : NONE;
        }
    }
    SAY(may_jump, 0);
    SAY(ledger->in_handler, 0);
    siglongjmp(jump, 1);
}

static void on_signal(int number) {
    (void)number;
    SAY(ledger->in_handler, 1);
    if (may_jump) {
        jump_out();
    } else if (strcmp(what, "crosses") == 0) {
        crossed(C, D);
    } else {
        nested(C, D);
    }
    SAY(ledger->in_handler, 0);
}

static __attribute__((noinline)) void ends_what_was_left(void) {
    for (int span = A; span <= J; ++span) {
        if (ledger->entries[span].state == LEFT && (span == J || !is_scope)) {
            end(span);
        }
    }
}

/* Handlers jump back to here. */
static __attribute__((noinline)) void jumped_over(void) {
    if (sigsetjmp(jump, 1) == 0) {
        SAY(may_jump, 1);
        nested(A, B);
        SAY(may_jump, 0);
    }
    ends_what_was_left();
}

static void *a_round(void *unused) {
    (void)unused;
    if (strcmp(what, "jumps") != 0) {
        nested(A, B);
        if (!is_scope) {
            crossed(A, B);
        }
        return NULL;
    }
    struct entry *const it = new_entry(O);
    it->key = it->id;
    SAY(it->state, BEGINS);
    {
        RINGMARK_SCOPE(step, it->id);
        SAY(it->state, OPEN);
        jumped_over();
        SAY(it->state, ENDS);
    }
    SAY(it->state, ENDED);
    if (is_scope) {
        ledger->unknown = 0; /* The end of the block has ended those of its kind. */
    }
    return NULL;
}

static void in_a_thread(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, a_round, NULL) == 0) {
        pthread_join(thread, NULL);
    }
}

/* A page with an open reservation is almost full: the thread is near a change of its ring, which comes with the
 * first record that has no room there. */
static struct ringmark_reservation near_a_change_of_ring(void) {
    const struct ringmark_reservation held = ringmark_reserve(ringmark_is_on(step), 2);
    for (int records = 0; records < 140; ++records) {
        struct ringmark_reservation it = ringmark_reserve(ringmark_is_on(step), 2);
        ringmark_cancel(&it);
    }
    return held;
}

static void change_ring(const struct ringmark_reservation *held) {
    begin(O);
    for (int i = 0; i < 10; ++i) {
        nested(A, B);
    }
    ringmark_cancel(held);
    nested(A, B);
    end(O);
}

static void wait_for_the_test(void) { raise(SIGSTOP); }

int main(int count, char **arguments) {
    if (count != 5 || ringmark_start_from_env() != 0) {
        return 2;
    }
    form = arguments[1];
    what = arguments[3];
    is_scope = strcmp(form, "scope") == 0;
    const int file = open(arguments[4], O_RDWR);
    ledger = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (ledger == MAP_FAILED) {
        return 2;
    }
    const volatile uint64_t *const stop = (const volatile uint64_t *)ledger + 511;
    for (int span = 0; span < atoi(arguments[2]); ++span) {
        begin(span);
    }
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    sigaction(SIGUSR1, &action, NULL);
    const int changes = strcmp(form, "ring") == 0;
    struct ringmark_reservation held;
    memset(&held, 0, sizeof held);
    if (changes) {
        held = near_a_change_of_ring();
    }
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
        return 3;
    }
    wait_for_the_test();
    do {
        if (changes) {
            change_ring(&held);
        } else if (strcmp(form, "claim") == 0) {
            in_a_thread();
        } else {
            a_round(NULL);
        }
        ++ledger->rounds;
    } while (*stop == 0 && !changes);
    wait_for_the_test();
    return 0;
}
