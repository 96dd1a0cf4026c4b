/* Threads each of which waits for one thing, for ever: `known_waits FILE`. When all have begun, it says on standard output
   what a profile is to say of each: the function that waits, a tab, what for. It ends with its input. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT __attribute__((noinline, noclone)) static void

static int to_holder[2], to_reader[2], to_writer[2], to_poller[2], pair[2];
static int listener, events, counter, locked_file, file_of_ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, lock_of_priority;
static pthread_mutex_t for_condition = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t semaphore;
static pid_t child;
static volatile char *untouched;
static volatile int holders, tid_of_holder, seen;

static int must(int result, const char *what) {
    if (result < 0) {
        perror(what);
        exit(3);
    }
    return result;
}

/* Each does something after its call: it would be no frame of the stack otherwise. */
WAIT reads_pipe(void) { char c; seen += read(to_reader[0], &c, 1); }
WAIT writes_pipe(void) {
    static char bytes[1 << 20];
    seen += write(to_writer[1], bytes, sizeof bytes);
}
WAIT reads_counter(void) { uint64_t n; seen += read(counter, &n, 8); }
WAIT accepts(void) { seen += accept(listener, NULL, NULL); }
WAIT receives(void) { char c; seen += recv(pair[0], &c, 1, 0); }
WAIT polls_one(void) {
    struct pollfd one = {to_poller[0], POLLIN, 0};
    seen += poll(&one, 1, -1);
}
WAIT polls_two(void) {
    struct pollfd two[] = {{to_poller[0], POLLIN, 0}, {pair[0], POLLPRI, 0}};
    seen += poll(two, 2, -1);
}
WAIT waits_for_events(void) { struct epoll_event e; seen += epoll_wait(events, &e, 1, -1); }
WAIT sleeps(void) {
    struct timespec long_time = {1000000, 0};
    seen += nanosleep(&long_time, NULL);
}
WAIT locks_mutex(void) { seen += pthread_mutex_lock(&lock); }
WAIT locks_mutex_of_priority(void) { seen += pthread_mutex_lock(&lock_of_priority); }
WAIT waits_for_condition(void) {
    pthread_mutex_lock(&for_condition);
    seen += pthread_cond_wait(&condition, &for_condition);
}
WAIT waits_for_semaphore(void) { seen += sem_wait(&semaphore); }
WAIT locks_file(void) { seen += flock(locked_file, LOCK_EX); }
WAIT locks_range(void) {
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8};
    seen += fcntl(file_of_ranges, F_OFD_SETLKW, &range);
}
WAIT waits_for_child(void) { seen += waitpid(child, NULL, 0); }
WAIT waits_for_signal(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN);
    seen += sigwaitinfo(&set, NULL);
}
WAIT touches_page(void) { seen += untouched[0]; }

/* Has both mutexes, and waits for a pipe. */
WAIT holds(void) {
    char c;
    tid_of_holder = gettid();
    pthread_mutex_lock(&lock);
    pthread_mutex_lock(&lock_of_priority);
    holders = 1;
    seen += read(to_holder[0], &c, 1);
}

static void *thread(void *function) {
    ((void (*)(void))(uintptr_t)function)();
    return NULL;
}

static void start(void (*function)(void), const char *name) {
    pthread_t made;
    must(-pthread_create(&made, NULL, thread, (void *)(uintptr_t)function), name);
    pthread_setname_np(made, name);
}

static void prepare_mutex_of_priority(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
    pthread_mutex_init(&lock_of_priority, &kind);
}

/* A page that nobody provides: 0 where this kernel does not let us. */
static int prepare_page(void) {
    int fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
    if (fd < 0) return 0;
    struct uffdio_api api = {.api = UFFD_API};
    must(ioctl(fd, UFFDIO_API, &api), "UFFDIO_API");
    untouched = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct uffdio_register range = {
        .range = {(uintptr_t)untouched, 4096}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    must(ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
    return 1;
}

static unsigned short prepare_listener(void) {
    struct sockaddr_in place = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof place;
    listener = must(socket(AF_INET, SOCK_STREAM, 0), "socket");
    must(bind(listener, (struct sockaddr *)&place, size), "bind");
    must(listen(listener, 1), "listen");
    must(getsockname(listener, (struct sockaddr *)&place, &size), "getsockname");
    return ntohs(place.sin_port);
}

/* Locks the file by other descriptors than those that the threads have. */
static void prepare_file(const char *path) {
    struct flock range = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 8};
    must(flock(must(open(path, O_RDWR | O_CREAT, 0600), path), LOCK_EX), "flock");
    must(fcntl(must(open(path, O_RDWR), path), F_OFD_SETLK, &range), "fcntl");
    locked_file = must(open(path, O_RDWR), path);
    file_of_ranges = must(open(path, O_RDWR), path);
}

static unsigned long inode(int fd) {
    struct stat about;
    must(fstat(fd, &about), "fstat");
    return about.st_ino;
}

static void start_all(int has_page) {
#define START(function) start(function, #function)
    START(holds);
    while (!holders) usleep(1000);
    START(reads_pipe); START(writes_pipe); START(reads_counter); START(accepts); START(receives);
    START(polls_one); START(polls_two); START(waits_for_events); START(sleeps); START(locks_mutex);
    START(locks_mutex_of_priority); START(waits_for_condition); START(waits_for_semaphore);
    START(locks_file); START(locks_range); START(waits_for_child); START(waits_for_signal);
    if (has_page) START(touches_page);
}

int main(int count, char **arguments) {
    char byte;
    if (count != 2) return 2;
    sigset_t set;
    sigfillset(&set);
    sigprocmask(SIG_BLOCK, &set, NULL);
    must(pipe(to_holder) + pipe(to_reader) + pipe(to_writer) + pipe(to_poller), "pipe");
    must(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
    events = must(epoll_create1(0), "epoll_create1");
    counter = must(eventfd(0, 0), "eventfd");
    unsigned short port = prepare_listener();
    prepare_file(arguments[1]);
    prepare_mutex_of_priority();
    sem_init(&semaphore, 0, 0);
    int has_page = prepare_page();
    child = must(fork(), "fork");
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) pause();
    }
    start_all(has_page);
    printf("holds\tread pipe:[%lu]\n", inode(to_holder[0]));
    printf("reads_pipe\tread pipe:[%lu]\n", inode(to_reader[0]));
    printf("writes_pipe\twrite pipe:[%lu]\n", inode(to_writer[1]));
    printf("reads_counter\tread eventfd\n");
    printf("accepts\taccept tcp 127.0.0.1:%d\n", port);
    printf("receives\trecvfrom unix socket\n");
    printf("polls_one\tpoll pipe:[%lu]\n", inode(to_poller[0]));
    printf("polls_two\tpoll 2 descriptors\n");
    printf("waits_for_events\tepoll_wait eventpoll\n");
    printf("sleeps\tclock_nanosleep\n");
    printf("locks_mutex\tmutex of holds[%d]\n", tid_of_holder);
    printf("locks_mutex_of_priority\tmutex of holds[%d]\n", tid_of_holder);
    printf("waits_for_condition\tfutex\n");
    printf("waits_for_semaphore\tfutex\n");
    printf("locks_file\tflock %s of known_waits[%d]\n", arguments[1], getpid());
    printf("locks_range\tfcntl %s\n", arguments[1]);
    printf("waits_for_child\twait4\n");
    printf("waits_for_signal\trt_sigtimedwait\n");
    if (has_page) printf("touches_page\tpage fault\n");
    printf("main\tread pipe:[%lu]\n", inode(0));
    fflush(stdout);
    while (read(0, &byte, 1) > 0) {}
    kill(child, SIGKILL);
    return 0;
}
