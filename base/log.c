#include "base/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
    pthread_mutex_t lock;
    const char *prefix;
    enum log_level level;
    bool shown; /* a progress line stands on the terminal */
    double last;
    uint64_t skipped; /* bad records so far */
} state = {PTHREAD_MUTEX_INITIALIZER, NULL, LOG_WARN, false, -1, 0};

void log_init(const char *prefix, enum log_level level)
{
    state.prefix = prefix;
    state.level = level;
}

static void wipe(void)
{
    if (state.shown)
        fputs("\r\033[K", stderr);
    state.shown = false;
}

void log_msg(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if (level > state.level)
        return;
    pthread_mutex_lock(&state.lock);
    wipe();
    if (state.prefix)
        fprintf(stderr, "%s: ", state.prefix);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    pthread_mutex_unlock(&state.lock);
}

void log_skipped(const char *file, uint64_t offset, const char *why)
{
    uint64_t before = __atomic_fetch_add(&state.skipped, 1, __ATOMIC_RELAXED);

    if (before >= LOG_SKIPPED_MAX && state.level < LOG_DEBUG)
        return;
    if (file)
        log_msg(LOG_WARN, "'%s' at byte %" PRIu64 ": %s; skipped", file, offset, why);
    else
        log_msg(LOG_WARN, "%s; skipped", why);
}

void log_skipped_end(void)
{
    uint64_t n = __atomic_exchange_n(&state.skipped, 0, __ATOMIC_RELAXED);

    if (n > LOG_SKIPPED_MAX && state.level < LOG_DEBUG)
        log_msg(LOG_WARN, "%" PRIu64 " more bad records were skipped; --verbose names each", n - LOG_SKIPPED_MAX);
}

void log_progress(const char *fmt, ...)
{
    static int tty = -1;
    double now = log_seconds();
    va_list ap;

    if (state.level < LOG_INFO)
        return;
    pthread_mutex_lock(&state.lock);
    if (tty < 0)
        tty = isatty(STDERR_FILENO);
    if (tty && now - state.last >= 1.0 / 6) {
        state.last = now;
        fputs("\r\033[K", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fflush(stderr);
        state.shown = true;
    }
    pthread_mutex_unlock(&state.lock);
}

void log_progress_end(void)
{
    pthread_mutex_lock(&state.lock);
    wipe();
    fflush(stderr);
    pthread_mutex_unlock(&state.lock);
}

double log_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
