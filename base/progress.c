#include "base/progress.h"

#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/json.h"
#include "base/log.h"
#include "base/utf8.h"

static struct {
    pthread_mutex_t lock; /* all but tool and form, which are set before there are threads */
    const char *tool;
    enum progress_form form;
    bool began;
    double first;         /* done at the first call */
    double start, shown;  /* when the first call was, and when something was last printed */
    struct buf text;      /* what is about to be printed */
    bool kept;            /* text is an object that was not printed yet */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

void progress_init(const char *tool, enum progress_form form)
{
    state.tool = tool;
    state.form = form;
}

/* ---- what is said ---- */

/* Units a second since the first call; 0: nothing can be said yet. */
static double rate_of(const struct progress *p, double first, double seconds)
{
    return seconds > 0 && p->done > first ? (p->done - first) / seconds : 0;
}

/* Seconds to the end; NAN: not known. */
static double left_of(const struct progress *p, double rate)
{
    if (!(p->total > 0) || !(rate > 0))
        return NAN;
    return p->done < p->total ? (p->total - p->done) / rate : 0;
}

static double share_of(const struct progress *p)
{
    return p->total > 0 ? fmin(p->done / p->total, 1) : NAN;
}

/* A name that may hold anything: control characters and what is no UTF-8 must not reach a terminal. */
static int put_name(struct buf *b, const char *s)
{
    const char *end = s + strlen(s);

    while (s < end) {
        uint32_t c;
        int n = utf8_next(s, end, &c);

        TRY(c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xfffd ? buf_putc(b, '?') : buf_put(b, s, (size_t)n));
        s += n;
    }
    return 0;
}

/* 12345678 as "12.3 MB", or with its unit's name. */
static int put_amount(struct buf *b, double n, const char *unit)
{
    if (unit)
        return buf_printf(b, n < 100 && n != floor(n) ? "%.2f %s" : "%.0f %s", n, unit);
    return n < 1e10 ? buf_printf(b, "%.1f MB", n / 1e6) : n < 1e13 ? buf_printf(b, "%.1f GB", n / 1e9)
                                                                   : buf_printf(b, "%.1f TB", n / 1e12);
}

static int put_left(struct buf *b, double left)
{
    double s = fmin(ceil(left), 3600e6);

    return buf_printf(b, ", %.0f:%02d:%02d left", floor(s / 3600), (int)(fmod(s, 3600) / 60), (int)fmod(s, 60));
}

int progress_put_line(struct buf *b, const struct progress *p, double first, double seconds)
{
    double rate = rate_of(p, first, seconds), left = left_of(p, rate);

    if (p->phase)
        TRY(buf_puts(b, p->phase));
    if (p->input) {
        TRY(p->phase ? buf_puts(b, ", ") : 0);
        TRY(put_name(b, p->input));
    }
    TRY(p->phase || p->input ? buf_puts(b, ": ") : 0);
    if (p->total > 0)
        TRY(buf_printf(b, "%.1f %% of ", 100 * share_of(p)));
    TRY(put_amount(b, p->total > 0 ? p->total : p->done, p->unit));
    if (rate > 0) {
        TRY(buf_puts(b, ", "));
        TRY(put_amount(b, rate, p->unit));
        TRY(buf_puts(b, "/s"));
    }
    if (!isnan(left))
        TRY(put_left(b, left));
    for (int i = 0; i < PROGRESS_COUNTS && p->count[i].name; i++)
        TRY(buf_printf(b, "%s%s %.10g", i ? ", " : "; ", p->count[i].name, p->count[i].value));
    return 0;
}

static int put_text(struct buf *b, const char *key, const char *text)
{
    TRY(json_put_key(b, key));
    return text ? json_put_name(b, text) : buf_puts(b, "null");
}

static int put_num(struct buf *b, const char *key, double n)
{
    TRY(json_put_key(b, key));
    return n == floor(n) && fabs(n) < 1e15 ? json_put_int(b, (int64_t)n) : json_put_num(b, n);
}

int progress_put_json(struct buf *b, const char *tool, const struct progress *p, double first, double seconds)
{
    double rate = rate_of(p, first, seconds);

    TRY(buf_putc(b, '{'));
    TRY(put_text(b, "tool", tool));
    TRY(put_text(b, "phase", p->phase));
    TRY(put_text(b, "input", p->input));
    TRY(put_text(b, "unit", p->unit ? p->unit : "bytes"));
    TRY(put_num(b, "done", p->done));
    TRY(put_num(b, "total", p->total > 0 ? p->total : NAN));
    TRY(put_num(b, "share", share_of(p)));
    TRY(put_num(b, "rate", rate > 0 ? rate : NAN));
    TRY(put_num(b, "seconds", seconds));
    TRY(put_num(b, "left", left_of(p, rate)));
    TRY(json_put_key(b, "counts"));
    TRY(buf_putc(b, '{'));
    for (int i = 0; i < PROGRESS_COUNTS && p->count[i].name; i++)
        TRY(put_num(b, p->count[i].name, p->count[i].value));
    return buf_puts(b, "}}\n");
}

/* ---- printing ---- */

static bool on_terminal(void)
{
    static int terminal = -1;

    if (terminal < 0)
        terminal = isatty(STDERR_FILENO);
    return terminal;
}

/* The bytes of a line that fit in so many columns, where what may be wide is taken to be. */
static size_t fitting(struct span line, int columns)
{
    const char *p = line.p, *end = line.p + line.n;

    while (p < end) {
        uint32_t c;
        int n = utf8_next(p, end, &c);

        columns -= c < 0x1100 ? 1 : 2;
        if (columns < 0)
            break;
        p += n;
    }
    return (size_t)(p - line.p);
}

static void print_line(void)
{
    struct winsize w;
    int columns = ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 1 ? w.ws_col - 1 : 79;

    log_progress("%.*s", (int)fitting(buf_span(&state.text), columns), state.text.p);
}

/* The object goes out at once, so that lines of several programs do not mix. */
static void print_object(void)
{
    fd_put(STDERR_FILENO, state.text.p, state.text.n);
    state.kept = false;
}

static bool wanted(void)
{
    return state.form == PROGRESS_JSON || (state.form == PROGRESS_AUTO && on_terminal());
}

/* In the lock. */
static bool due_at(double now)
{
    return !state.began || now - state.shown >= (state.form == PROGRESS_JSON ? 1 : 1.0 / 6);
}

bool progress_due(void)
{
    bool due;

    if (!wanted())
        return false;
    pthread_mutex_lock(&state.lock);
    due = state.form == PROGRESS_JSON || due_at(log_seconds()); /* the last object says where the run ended */
    pthread_mutex_unlock(&state.lock);
    return due;
}

/* In the lock.  Memory that is short costs a line, and nothing else. */
static void show(const struct progress *p)
{
    double now = log_seconds();
    bool due = due_at(now);

    if (!state.began) {
        state.began = true;
        state.start = now;
        state.first = p->done;
    }
    if (!due && state.form != PROGRESS_JSON)
        return;
    buf_clear(&state.text);
    if (state.form == PROGRESS_JSON ? progress_put_json(&state.text, state.tool, p, state.first, now - state.start) < 0
                                    : progress_put_line(&state.text, p, state.first, now - state.start) < 0)
        return;
    state.kept = state.form == PROGRESS_JSON;
    if (!due)
        return;
    state.shown = now;
    if (state.kept)
        print_object();
    else
        print_line();
}

void progress_show(const struct progress *p)
{
    if (!wanted())
        return;
    pthread_mutex_lock(&state.lock);
    show(p);
    pthread_mutex_unlock(&state.lock);
}

void progress_end(void)
{
    log_progress_end();
    pthread_mutex_lock(&state.lock);
    if (state.kept)
        print_object();
    pthread_mutex_unlock(&state.lock);
}
