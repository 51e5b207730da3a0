#include "base/range_in.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file_in.h"
#include "base/http.h"
#include "base/log.h"

struct range_in {
    struct range_in_pace *pace;
    char *name, *address; /* address NULL: a file */
    int fd;
    uint64_t size;  /* of a file */
    struct http *http;
    bool turned;    /* http has the address in hand */
    uint64_t at, end; /* what was asked for and is not read yet */
    bool beyond;    /* the file ends before it */
    uint64_t bytes, requests;
};

/* ---- pace ---- */

void range_in_pace_start(struct range_in_pace *p, double bytes, double requests)
{
    *p = (struct range_in_pace){.bytes = bytes, .requests = requests};
    pthread_mutex_init(&p->lock, NULL);
}

/* When what costs `cost` seconds may begin; the next may after that. */
static double reserve(double *free_at, double cost, double now)
{
    double at = *free_at > now ? *free_at : now;

    *free_at = at + cost;
    return at;
}

/* Waits until a request may be made, or n bytes may be read. */
static void wait_for(struct range_in_pace *p, uint64_t n, bool request)
{
    double now = log_seconds(), at = now, bytes;

    if (!p || (p->bytes <= 0 && p->requests <= 0))
        return;
    pthread_mutex_lock(&p->lock);
    if (request && p->requests > 0)
        at = reserve(&p->request_free, 1 / p->requests, now);
    if (n && p->bytes > 0) {
        bytes = reserve(&p->bytes_free, (double)n / p->bytes, now);
        at = bytes > at ? bytes : at;
    }
    pthread_mutex_unlock(&p->lock);
    at -= now;
    if (at > 0)
        nanosleep(&(struct timespec){(time_t)at, (long)((at - (double)(time_t)at) * 1e9)}, NULL);
}

/* ---- files in hand ---- */

int range_in_new(struct range_in **out, struct range_in_pace *pace, struct err *e)
{
    struct range_in *r = calloc(1, sizeof *r);

    *out = r;
    if (!r)
        return err_set(e, ERR_NOMEM, "out of memory for a file");
    r->pace = pace;
    r->fd = -1;
    return 0;
}

/* Puts down what is in hand; a connection stays. */
static void put_down(struct range_in *r)
{
    if (r->fd >= 0)
        close(r->fd);
    free(r->name);
    free(r->address);
    r->fd = -1;
    r->name = r->address = NULL;
    r->turned = r->beyond = false;
    r->at = r->end = r->size = 0;
}

void range_in_free(struct range_in *r)
{
    if (!r)
        return;
    put_down(r);
    http_close(r->http);
    free(r);
}

/* Looks at the file that was opened under r->name. */
static int look(struct range_in *r, struct err *e)
{
    struct stat st;

    if (r->fd < 0)
        return err_sys(e, ERR_IO, "cannot open '%s'", r->name);
    if (fstat(r->fd, &st) < 0)
        return err_sys(e, ERR_IO, "cannot read '%s'", r->name);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_IO, "cannot read '%s': it is no regular file, of which parts can be read", r->name);
    r->size = (uint64_t)st.st_size;
    return 0;
}

int range_in_turn(struct range_in *r, const char *name, struct err *e)
{
    bool remote = http_is_address(name);

    put_down(r);
    r->name = remote ? http_name(name) : strdup(name);
    r->address = remote ? strdup(name) : NULL;
    if (!r->name || (remote && !r->address))
        return err_set(e, ERR_NOMEM, "out of memory for a file");
    if (remote)
        return 0;
    r->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    return look(r, e);
}

int range_in_turn_beneath(struct range_in *r, const char *folder, const char *name, struct err *e)
{
    size_t n = strlen(folder), room = n + strlen(name) + 2;

    put_down(r);
    r->name = malloc(room);
    if (!r->name)
        return err_set(e, ERR_NOMEM, "out of memory for a file");
    snprintf(r->name, room, "%s%s%s", folder, n && folder[n - 1] != '/' ? "/" : "", name);
    r->fd = file_beneath(folder, name);
    if (r->fd < 0 && (errno == EXDEV || errno == ELOOP))
        return err_set(e, ERR_IO, "cannot open '%s': it leads out of the folder '%s'", r->name, n ? folder : ".");
    return look(r, e);
}

const char *range_in_name(const struct range_in *r)
{
    return r->name ? r->name : "";
}

/* Asks a server for bytes, and waits for its answer. */
static int ask_server(struct range_in *r, uint64_t at, uint64_t n, struct err *e)
{
    int rc = 0;

    r->requests++;
    wait_for(r->pace, 0, true);
    if (r->turned) {
        http_go(r->http, at, n);
        return 0;
    }
    if (!r->http && (rc = http_new(&r->http, e)) < 0)
        return err_wrap(e, "cannot read '%.150s'", r->name);
    rc = http_turn(r->http, r->address, at, n, e);
    r->turned = rc == 0;
    return rc;
}

int range_in_ask(struct range_in *r, uint64_t at, uint64_t n, struct err *e)
{
    int rc;

    r->at = at;
    r->end = n < UINT64_MAX - at ? at + n : UINT64_MAX;
    r->beyond = false;
    if (!r->address) {
        r->requests++;
        wait_for(r->pace, 0, true);
        r->beyond = at >= r->size;
        return 0;
    }
    if (r->turned && http_size(r->http) && at >= http_size(r->http)) {
        r->beyond = true;
        return 0;
    }
    rc = ask_server(r, at, n, e);
    if (rc < 0 && r->http && http_is_beyond(r->http)) { /* its answer, 416 */
        r->beyond = true;
        return 0;
    }
    return rc;
}

static ssize_t read_file(const struct range_in *r, void *p, size_t n, struct err *e)
{
    ssize_t k;

    do
        k = pread(r->fd, p, n, (off_t)r->at);
    while (k < 0 && errno == EINTR);
    return k < 0 ? err_sys(e, ERR_IO, "cannot read '%s' at offset %" PRIu64, r->name, r->at) : k;
}

int64_t range_in_next(struct range_in *r, void *p, size_t n, struct err *e)
{
    ssize_t k;

    if (n > r->end - r->at)
        n = (size_t)(r->end - r->at);
    if (n == 0 || r->beyond || (!r->address && r->at > INT64_MAX))
        return 0;
    k = r->address ? http_read(r->http, p, n, e) : read_file(r, p, n, e);
    if (k > 0) {
        r->at += (uint64_t)k;
        r->bytes += (uint64_t)k;
        wait_for(r->pace, (uint64_t)k, false);
    }
    return k;
}

int range_in_read(struct range_in *r, uint64_t at, void *p, size_t n, struct err *e)
{
    size_t got = 0;

    if (n == 0)
        return 0;
    TRY(range_in_ask(r, at, n, e));
    while (got < n) {
        int64_t k = range_in_next(r, (char *)p + got, n - got, e);
        if (k < 0)
            return (int)k;
        if (k == 0)
            return err_set(e, ERR_FORMAT, "'%s' ends at byte %" PRIu64 ", before byte %" PRIu64, r->name, at + got, at + n);
        got += (size_t)k;
    }
    return 0;
}

int range_in_size(struct range_in *r, uint64_t *size, struct err *e)
{
    char byte;

    if (r->address && !r->turned) {
        TRY(range_in_ask(r, 0, 1, e));
        if (range_in_next(r, &byte, 1, e) < 0)
            return e->code;
    }
    *size = r->address ? http_size(r->http) : r->size;
    if (r->address && !*size && !r->beyond)
        return err_set(e, ERR_UNSUPPORTED, "cannot read '%s': the server does not say how long it is", r->name);
    return 0;
}

uint64_t range_in_bytes(const struct range_in *r)
{
    return r->bytes;
}

uint64_t range_in_requests(const struct range_in *r)
{
    return r->requests;
}
