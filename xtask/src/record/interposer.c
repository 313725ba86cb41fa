/*
 * Library for LD_PRELOAD that notes a program's calls on the files below one folder.
 *
 * DOVETAIL_RECORD_FOLDER is the folder, DOVETAIL_RECORD_LOG the log: records of 64 bytes in the
 * order in which calls began, in a sparse file that all processes of the program map. A record is
 * complete when its `kind` is set, so that the log is usable also after a kill. It costs a call
 * two readings of the clock and two of the thread's CPU time, about a microsecond.
 *
 * Noted: read, write, their p and v forms, fsync, fdatasync, fallocate, posix_fallocate. Not
 * noted: stdio (fread, fwrite), memory mappings, io_uring, libaio, preadv2 and pwritev2,
 * copy_file_range, sendfile, sync_file_range, programs linked statically, changes of a size by
 * truncation, names that go.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct record {
    uint64_t start_ns;    /* CLOCK_MONOTONIC */
    uint64_t duration_ns;
    uint64_t cpu_ns;      /* CPU time of the thread since its last call ended, or since it began */
    int64_t offset;       /* -1: where the file ends */
    uint64_t bytes;
    uint32_t thread;
    uint32_t file;
    uint64_t size;        /* of a file: when it was first seen */
    uint32_t name_bytes;  /* of a file: its name fills the records that follow */
    uint32_t kind;        /* r w d s a, F a file, 0 nothing yet */
};
_Static_assert(sizeof(struct record) == 64, "records have 64 bytes");

#define RECORDS ((uint64_t)1 << 26)
#define FDS 65536
#define OTHER UINT32_MAX /* in `files`: a descriptor of no file below the folder */

/* The first record of the log: what the processes share. */
struct head {
    _Atomic uint64_t next;
    _Atomic uint32_t files;
};

static struct head *head;
static struct record *records;
static char folder[PATH_MAX];
static size_t folder_bytes;
static _Atomic uint32_t files[FDS]; /* 0: not known yet, otherwise number + 1 */
static __thread uint32_t thread_id;
static __thread uint64_t cpu_before;
static __thread uint64_t cpu_of_others; /* before calls that were left out since the last record */

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void forget_thread(void)
{
    thread_id = 0;
    cpu_before = 0;
    cpu_of_others = 0;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, forget_thread);
    const char *below = getenv("DOVETAIL_RECORD_FOLDER");
    const char *log = getenv("DOVETAIL_RECORD_LOG");
    if (!below || !log || !realpath(below, folder))
        return;
    folder_bytes = strlen(folder);
    int fd = open(log, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return;
    uint64_t bytes = RECORDS * sizeof(struct record);
    if (ftruncate(fd, (off_t)bytes) == 0) {
        void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (map != MAP_FAILED) {
            records = map;
            head = map;
        }
    }
    close(fd);
}

/* The next `count` records; NULL when the log is full. The first one is the head. */
static struct record *take(uint64_t count)
{
    uint64_t at = atomic_fetch_add(&head->next, count) + 1;
    return at + count <= RECORDS ? &records[at] : NULL;
}

static void name_file(uint32_t number, uint64_t size, const char *name)
{
    size_t bytes = strlen(name);
    struct record *record = take(1 + (bytes + sizeof *record - 1) / sizeof *record);
    if (!record)
        return;
    record->file = number;
    record->size = size;
    record->name_bytes = (uint32_t)bytes;
    memcpy(record + 1, name, bytes);
    atomic_thread_fence(memory_order_release);
    record->kind = 'F';
}

/* The number of a descriptor's file + 1; OTHER if it is none below the folder. Each opening has a
 * number of its own: the names tell which are the same file. */
static uint32_t look_up(int fd)
{
    char link[64], path[PATH_MAX];
    struct stat about;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t bytes = readlink(link, path, sizeof path - 1);
    if (bytes <= 0)
        return OTHER;
    path[bytes] = 0;
    if (strncmp(path, folder, folder_bytes) != 0 || path[folder_bytes] != '/')
        return OTHER;
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
        return OTHER;
    uint32_t number = atomic_fetch_add(&head->files, 1);
    name_file(number, (uint64_t)about.st_size, path + folder_bytes + 1);
    return number + 1;
}

static uint32_t file_of(int fd)
{
    if (!head || fd < 0 || fd >= FDS)
        return OTHER;
    uint32_t file = atomic_load(&files[fd]);
    if (file == 0) {
        int saved = errno;
        file = look_up(fd);
        atomic_store(&files[fd], file);
        errno = saved;
    }
    return file;
}

struct call {
    struct record *record;
    uint64_t start_ns;
    uint64_t cpu_ns;
    uint32_t file;
};

static struct call call_begins(int fd)
{
    struct call call = { .file = file_of(fd) };
    if (call.file == OTHER)
        return call;
    if (thread_id == 0)
        thread_id = (uint32_t)syscall(SYS_gettid);
    call.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    call.record = take(1);
    call.start_ns = clock_ns(CLOCK_MONOTONIC);
    return call;
}

/* A call that failed is left out: its record stays empty. */
static void call_ended(struct call *call, char kind, int64_t offset, int64_t bytes)
{
    if (call->file == OTHER)
        return;
    int saved = errno;
    struct record *record = call->record;
    if (record && bytes >= 0) {
        record->start_ns = call->start_ns;
        record->duration_ns = clock_ns(CLOCK_MONOTONIC) - call->start_ns;
        record->cpu_ns = call->cpu_ns + cpu_of_others;
        record->offset = offset;
        record->bytes = (uint64_t)bytes;
        record->thread = thread_id;
        record->file = call->file - 1;
        atomic_thread_fence(memory_order_release);
        record->kind = (uint32_t)kind;
        cpu_of_others = 0;
    } else {
        cpu_of_others += call->cpu_ns;
    }
    cpu_before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    errno = saved;
}

#define REAL(name, ...)                                                                            \
    static __typeof__(name) *real;                                                                 \
    if (!real)                                                                                     \
        real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);

/* Where a read or write without an offset goes: writes may be appended. */
static int64_t position(int fd, char kind)
{
    int flags = kind == 'w' ? fcntl(fd, F_GETFL) : 0;
    return flags >= 0 && (flags & O_APPEND) ? -1 : (int64_t)lseek(fd, 0, SEEK_CUR);
}

#define AT_OFFSET(name, kind, constant, extra)                                                     \
    ssize_t name(int fd, constant void *buffer, size_t bytes, extra offset)                        \
    {                                                                                              \
        REAL(name)                                                                                 \
        struct call call = call_begins(fd);                                                        \
        ssize_t done = real(fd, buffer, bytes, offset);                                            \
        call_ended(&call, kind, offset, done);                                                     \
        return done;                                                                               \
    }
AT_OFFSET(pread, 'r', , off_t)
AT_OFFSET(pread64, 'r', , off64_t)
AT_OFFSET(pwrite, 'w', const, off_t)
AT_OFFSET(pwrite64, 'w', const, off64_t)

#define VECTOR_AT_OFFSET(name, kind, extra)                                                        \
    ssize_t name(int fd, const struct iovec *vector, int count, extra offset)                      \
    {                                                                                              \
        REAL(name)                                                                                 \
        struct call call = call_begins(fd);                                                        \
        ssize_t done = real(fd, vector, count, offset);                                            \
        call_ended(&call, kind, offset, done);                                                     \
        return done;                                                                               \
    }
VECTOR_AT_OFFSET(preadv, 'r', off_t)
VECTOR_AT_OFFSET(preadv64, 'r', off64_t)
VECTOR_AT_OFFSET(pwritev, 'w', off_t)
VECTOR_AT_OFFSET(pwritev64, 'w', off64_t)

#define AT_POSITION(name, kind, type, number)                                                      \
    ssize_t name(int fd, type buffer, number bytes)                                                \
    {                                                                                              \
        REAL(name)                                                                                 \
        struct call call = call_begins(fd);                                                        \
        int64_t at = call.file == OTHER ? 0 : position(fd, kind);                                        \
        ssize_t done = real(fd, buffer, bytes);                                                    \
        call_ended(&call, kind, at, done);                                                         \
        return done;                                                                               \
    }
AT_POSITION(read, 'r', void *, size_t)
AT_POSITION(write, 'w', const void *, size_t)
AT_POSITION(readv, 'r', const struct iovec *, int)
AT_POSITION(writev, 'w', const struct iovec *, int)

#define SYNC(name, kind)                                                                           \
    int name(int fd)                                                                               \
    {                                                                                              \
        REAL(name)                                                                                 \
        struct call call = call_begins(fd);                                                        \
        int done = real(fd);                                                                       \
        call_ended(&call, kind, 0, done);                                                          \
        return done;                                                                               \
    }
SYNC(fsync, 's')
SYNC(fdatasync, 'd')

/* With flags (punch a hole, keep the size) an allocation is not noted. */
#define ALLOCATE(name, number)                                                                     \
    int name(int fd, int mode, number offset, number bytes)                                        \
    {                                                                                              \
        REAL(name)                                                                                 \
        struct call call = call_begins(fd);                                                        \
        int done = real(fd, mode, offset, bytes);                                                  \
        call_ended(&call, 'a', offset, done != 0 || mode != 0 ? -1 : (int64_t)bytes);              \
        return done;                                                                               \
    }
ALLOCATE(fallocate, off_t)
ALLOCATE(fallocate64, off64_t)

#define POSIX_ALLOCATE(name, number)                                                               \
    int name(int fd, number offset, number bytes)                                                  \
    {                                                                                              \
        REAL(name)                                                                                 \
        struct call call = call_begins(fd);                                                        \
        int done = real(fd, offset, bytes);                                                        \
        call_ended(&call, 'a', offset, done != 0 ? -1 : (int64_t)bytes);                           \
        return done;                                                                               \
    }
POSIX_ALLOCATE(posix_fallocate, off_t)
POSIX_ALLOCATE(posix_fallocate64, off64_t)

/* A descriptor that is closed is the next file's. */
static void forget(int fd)
{
    if (fd >= 0 && fd < FDS)
        atomic_store(&files[fd], 0);
}

int close(int fd)
{
    REAL(close)
    forget(fd);
    return real(fd);
}

int fclose(FILE *stream)
{
    REAL(fclose)
    forget(stream ? fileno(stream) : -1);
    return real(stream);
}

int dup2(int fd, int to)
{
    REAL(dup2)
    forget(to);
    return real(fd, to);
}

/* Also where a descriptor is taken over without a close. */
int dup3(int fd, int to, int flags)
{
    REAL(dup3)
    forget(to);
    return real(fd, to, flags);
}

int close_range(unsigned int first, unsigned int last, int flags)
{
    REAL(close_range)
    for (unsigned int fd = first; fd < FDS && fd <= last; fd++)
        forget((int)fd);
    return real(first, last, flags);
}
