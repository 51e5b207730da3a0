#include "base/log.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/utf8.h"

static struct {
    pthread_mutex_t lock;
    const char *prefix;
    enum log_level level;
    bool shown; /* a progress line stands on the terminal */
    double last;
    uint64_t skipped; /* bad records so far */
} state = {PTHREAD_MUTEX_INITIALIZER, NULL, LOG_WARN, false, -1, 0};

static volatile sig_atomic_t hurry;

void log_no_wait(void)
{
    hurry = 1;
}

void log_init(const char *prefix, enum log_level level)
{
    state.prefix = prefix;
    state.level = level;
}

/* ---- printing ---- */

/* A message as it goes out: wiped line, prefix, text, newline, in one buffer, so that one write prints it. */
struct line {
    char *p, own[1024];
    size_t n, cap;
};

/* Makes room for n bytes more; without memory the rest of a long message is lost. */
static bool reserve(struct line *l, size_t n)
{
    char *p;

    if (l->n + n <= l->cap)
        return true;
    p = malloc(2 * (l->n + n));
    if (!p)
        return false;
    memcpy(p, l->p, l->n);
    if (l->p != l->own)
        free(l->p);
    l->p = p;
    l->cap = 2 * (l->n + n);
    return true;
}

static void put(struct line *l, const char *s, size_t n)
{
    if (!reserve(l, n))
        return;
    memcpy(l->p + l->n, s, n);
    l->n += n;
}

/* Text that may hold names and data from outside: what could steer a terminal (control characters, also those of two
 * bytes, and what is no UTF-8) is written as \n, \t or \xHH. */
static void put_text(struct line *l, const char *s, size_t n)
{
    const char *end = s + n;

    while (s < end) {
        uint32_t c;
        int k = utf8_next(s, end, &c);
        bool broken = c == 0xfffd && (k != 3 || (unsigned char)*s != 0xef);
        char code[8];

        if (!broken && c >= 0x20 && !(c >= 0x7f && c < 0xa0)) {
            put(l, s, (size_t)k);
        } else if (c == '\n' || c == '\t') {
            put(l, c == '\n' ? "\\n" : "\\t", 2);
        } else {
            for (int i = 0; i < k; i++)
                put(l, code, (size_t)snprintf(code, sizeof code, "\\x%02x", (unsigned char)s[i]));
        }
        s += k;
    }
}

static void put_format(struct line *l, const char *fmt, va_list ap)
{
    char small[512], *text = small;
    va_list again;
    int n;

    va_copy(again, ap);
    n = vsnprintf(small, sizeof small, fmt, ap);
    if (n >= (int)sizeof small) {
        text = malloc((size_t)n + 1);
        if (text)
            vsnprintf(text, (size_t)n + 1, fmt, again);
        else
            text = small;
        n = text == small ? (int)sizeof small - 1 : n;
    }
    va_end(again);
    put_text(l, text, n > 0 ? (size_t)n : 0);
    if (text != small)
        free(text);
}

/* One write, so that lines of tools that share standard error do not mix. */
static void print(struct line *l)
{
    fd_put_or_drop(STDERR_FILENO, l->p, l->n, &hurry);
    if (l->p != l->own)
        free(l->p);
}

static const char wipe[] = "\r\033[K";

/* In the lock. */
static void put_wipe(struct line *l)
{
    if (state.shown)
        put(l, wipe, sizeof wipe - 1);
    state.shown = false;
}

static void say(const char *after, const char *fmt, va_list ap)
{
    struct line l = {.cap = sizeof l.own};

    l.p = l.own;
    pthread_mutex_lock(&state.lock);
    put_wipe(&l);
    if (state.prefix) {
        put(&l, state.prefix, strlen(state.prefix));
        put(&l, ": ", 2);
    }
    put_format(&l, fmt, ap);
    put(&l, "\n", 1);
    if (after)
        put(&l, after, strlen(after));
    print(&l);
    pthread_mutex_unlock(&state.lock);
}

void log_msg(enum log_level level, const char *fmt, ...)
{
    va_list ap;

    if (level > state.level)
        return;
    va_start(ap, fmt);
    say(NULL, fmt, ap);
    va_end(ap);
}

void log_error_and(const char *after, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say(after, fmt, ap);
    va_end(ap);
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
        struct line l = {.cap = sizeof l.own};

        l.p = l.own;
        state.last = now;
        put(&l, wipe, sizeof wipe - 1);
        va_start(ap, fmt);
        put_format(&l, fmt, ap);
        va_end(ap);
        print(&l);
        state.shown = true;
    }
    pthread_mutex_unlock(&state.lock);
}

void log_progress_end(void)
{
    struct line l = {.cap = sizeof l.own};

    l.p = l.own;
    pthread_mutex_lock(&state.lock);
    put_wipe(&l);
    print(&l);
    pthread_mutex_unlock(&state.lock);
}

double log_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}
