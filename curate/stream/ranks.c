#include "curate/stream/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>

#include "base/http.h"

int ranks_share(const struct comm *c, char *const *inputs, int n, int *first, int *count, struct err *e)
{
    uint64_t total = 0, at = 0;
    struct stat st;

    if (n == 0)
        return err_set(e, ERR_ARG, "several ranks need input files, not standard input");
    for (int i = 0; i < n; i++) {
        if (http_is_address(inputs[i]))
            return err_set(e, ERR_UNSUPPORTED, "'%.*s' is an address; several ranks need files", http_name_length(inputs[i]),
                           inputs[i]);
        if (stat(inputs[i], &st) < 0)
            return err_sys(e, ERR_IO, "cannot open '%s'", inputs[i]);
        if (!S_ISREG(st.st_mode))
            return err_set(e, ERR_ARG, "'%s' is no file, which several ranks need", inputs[i]);
        total += (uint64_t)st.st_size + 1;
    }
    *first = *count = 0;
    for (int i = 0; i < n; i++) {
        uint64_t size = stat(inputs[i], &st) == 0 ? (uint64_t)st.st_size + 1 : 1;
        int rank = (int)((unsigned __int128)(at + size / 2) * (unsigned)c->size / total);

        at += size;
        if (rank != c->rank)
            continue;
        *first = *count ? *first : i;
        ++*count;
    }
    return 0;
}

/* Before the bytes themselves. */
struct heading {
    int64_t kind, n; /* kind -1: the end */
};

static int send_part(struct comm *c, int kind, struct span s, struct err *e)
{
    struct heading h = {kind, (int64_t)s.n};
    struct comm_call heading = {.kind = COMM_SEND, .send = &h, .n = 2, .type = COMM_I64};
    struct comm_call bytes = {.kind = COMM_SEND, .send = s.p, .n = s.n, .type = COMM_U8};
    double timeout = c->timeout;
    int rc;

    c->timeout = INFINITY; /* rank 0 has others before this one */
    rc = comm_run(c, &heading, e);
    if (rc == 0 && s.n)
        rc = comm_run(c, &bytes, e);
    c->timeout = timeout;
    return rc;
}

int ranks_own_name(char own[4096], const char *name, int rank, struct err *e)
{
    const char *star = strchr(name, '*');

    if (snprintf(own, 4096, "%.*s%05d%s", (int)(star - name), name, rank, star + 1) >= 4096)
        return err_set(e, ERR_ARG, "the name '%.100s...' is too long", name);
    return 0;
}

int ranks_put(void *stream, struct span s, struct err *e)
{
    struct rank_stream *r = stream;

    return s.n ? send_part(r->c, r->kind, s, e) : 0;
}

int ranks_end(struct comm *c, struct err *e)
{
    return send_part(c, -1, (struct span){0}, e);
}

static int collect_from(struct comm *c, int rank, const struct sink *to, int kinds, struct buf *b, struct err *e)
{
    for (;;) {
        struct heading h = {0};
        struct comm_call heading = {.kind = COMM_RECV, .recv = &h, .n = 2, .type = COMM_I64, .peer = rank};
        struct comm_call bytes = {.kind = COMM_RECV, .type = COMM_U8, .peer = rank};

        TRY(comm_run(c, &heading, e));
        if (h.kind < 0)
            return 0;
        if (h.kind >= kinds)
            return err_set(e, ERR_FORMAT, "rank %d sends what rank 0 does not expect", rank);
        buf_clear(b);
        if (buf_reserve(b, (size_t)h.n) < 0)
            return err_set(e, ERR_NOMEM, "out of memory for %" PRId64 " bytes of rank %d", h.n, rank);
        b->n = bytes.n = (size_t)h.n;
        bytes.recv = b->p;
        TRY(comm_run(c, &bytes, e));
        TRY(to[h.kind].put(to[h.kind].to, buf_span(b), e));
    }
}

int ranks_collect(struct comm *c, const struct sink *to, int kinds, struct err *e)
{
    double timeout = c->timeout;
    struct buf b = {0};
    int rc = 0;

    c->timeout = INFINITY;
    for (int r = 1; r < c->size && rc == 0; r++)
        rc = collect_from(c, r, to, kinds, &b, e);
    c->timeout = timeout;
    buf_free(&b);
    return rc;
}
