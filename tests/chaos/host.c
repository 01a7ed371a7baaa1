/* A host whose wall clock and disk a file spoils: LD_PRELOAD it; GWMOND_CHAOS_HOST names the file, of three longs:
 * seconds by which its clock is ahead, milliseconds that a flush to disk takes, whether writes fail. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long *host;
enum { AHEAD, FLUSH_MS, BROKEN, SIZE };

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("GWMOND_CHAOS_HOST");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *shared = mmap(NULL, SIZE * sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    host = shared == MAP_FAILED ? NULL : shared;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int code = syscall(SYS_clock_gettime, clock, now);
    if (code == 0 && host && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += host[AHEAD];
    return code;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *told) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (told)
        *told = now.tv_sec;
    return now.tv_sec;
}

static int flush(long number, int file) {
    if (host && host[FLUSH_MS])
        usleep(host[FLUSH_MS] * 1000);
    return syscall(number, file);
}

int fsync(int file) { return flush(SYS_fsync, file); }

int fdatasync(int file) { return flush(SYS_fdatasync, file); }

/* SQLite writes its files by this, and nothing else does. */
ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t offset) {
    if (host && host[BROKEN]) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pwrite64, file, bytes, size, offset);
}
