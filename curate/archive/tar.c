#include "curate/archive/tar.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BLOCK = 512, NAME_MAX_BYTES = 64 << 10 };

struct tar {
    const char *name;
    ssize_t (*read)(void *arg, void *p, size_t n, struct err *e);
    void *arg;
    uint64_t at;           /* bytes read so far */
    uint64_t left, padding; /* of the member, yet to be read */
    struct buf path;       /* of the member to come, from GNU or pax; else of this one */
    bool has_path, has_size;
    uint64_t size;
    struct buf extended;
    bool ended, again;     /* again: the header that follows has been read */
    char head[BLOCK];
};

int tar_open(struct tar **out, const char *name, ssize_t (*read)(void *, void *, size_t, struct err *), void *arg,
             struct err *e)
{
    struct tar *t = *out = calloc(1, sizeof *t);

    if (!t)
        return err_set(e, ERR_NOMEM, "out of memory for an archive");
    t->name = name;
    t->read = read;
    t->arg = arg;
    t->path.max = t->extended.max = NAME_MAX_BYTES;
    return 0;
}

void tar_close(struct tar *t)
{
    if (!t)
        return;
    buf_free(&t->path);
    buf_free(&t->extended);
    free(t);
}

static int cut_short(struct tar *t, struct err *e)
{
    t->ended = true;
    return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": the tar archive is cut short", t->name, t->at);
}

/* Reads exactly n bytes: 1; 0: the archive ends before the first.  Its end inside is ERR_FORMAT. */
static int take(struct tar *t, char *p, size_t n, struct err *e)
{
    size_t have = 0;

    while (have < n) {
        ssize_t k = t->read(t->arg, p + have, n - have, e);
        if (k < 0) {
            t->ended = true;
            return (int)k;
        }
        if (k == 0 && have == 0)
            return 0;
        if (k == 0)
            return cut_short(t, e);
        have += (size_t)k;
        t->at += (uint64_t)k;
    }
    return 1;
}

/* ---- headers ---- */

/* Octal digits, or GNU's binary form. */
static uint64_t number(const char *p, size_t n)
{
    uint64_t v = 0;

    if ((unsigned char)*p & 0x80) {
        for (size_t i = n > 8 ? n - 8 : 0; i < n; i++)
            v = v << 8 | (unsigned char)p[i];
        return v;
    }
    while (n && *p == ' ')
        p++, n--;
    for (; n && *p >= '0' && *p <= '7'; p++, n--)
        v = v << 3 | (uint64_t)(*p - '0');
    return v;
}

static bool is_header(const char *p)
{
    uint64_t sum = 0;

    if (p[0] == '\0')
        return false;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : (unsigned char)p[i];
    return p[148] && number(p + 148, 8) == sum;
}

bool tar_begins(struct span start)
{
    return start.n >= BLOCK && is_header(start.p);
}

static bool is_empty(const char *p)
{
    for (int i = 0; i < BLOCK; i++)
        if (p[i])
            return false;
    return true;
}

static int skip(struct tar *t, uint64_t n, struct err *e)
{
    char b[16 * BLOCK];

    while (n) {
        int rc = take(t, b, n < sizeof b ? (size_t)n : sizeof b, e);
        if (rc < 0)
            return rc;
        if (rc == 0)
            return cut_short(t, e);
        n -= n < sizeof b ? n : sizeof b;
    }
    return 0;
}

static int no_memory(struct err *e)
{
    return err_set(e, ERR_NOMEM, "out of memory for an archive");
}

/* The bytes of a member that tells of the next one, into t->extended; nothing if too long. */
static int read_extended(struct tar *t, uint64_t size, struct err *e)
{
    uint64_t padded = (size + BLOCK - 1) / BLOCK * BLOCK;

    buf_clear(&t->extended);
    if (size >= NAME_MAX_BYTES)
        return skip(t, size > UINT64_MAX - BLOCK ? size : padded, e);
    if (buf_reserve(&t->extended, (size_t)size) < 0)
        return no_memory(e);
    if (size) {
        int rc = take(t, t->extended.p, (size_t)size, e);
        if (rc <= 0)
            return rc < 0 ? rc : cut_short(t, e);
    }
    t->extended.n = (size_t)size;
    return skip(t, padded - size, e);
}

static int set_path(struct tar *t, struct span s, struct err *e)
{
    while (s.n && s.p[s.n - 1] == '\0')
        s.n--;
    buf_clear(&t->path);
    t->has_path = true;
    return buf_put_span(&t->path, s) < 0 ? no_memory(e) : 0;
}

/* pax: lines of "LENGTH KEY=VALUE\n". */
static int read_pax(struct tar *t, struct err *e)
{
    const char *p = t->extended.p, *end = p + t->extended.n;

    while (p < end) {
        size_t n = 0;
        const char *q = p;
        while (q < end && *q >= '0' && *q <= '9' && n < NAME_MAX_BYTES)
            n = n * 10 + (size_t)(*q++ - '0');
        if (q == end || *q != ' ' || n <= (size_t)(q + 1 - p) || n > (size_t)(end - p))
            return 0;
        struct span line = {q + 1, n - (size_t)(q + 1 - p)};
        if (line.n && line.p[line.n - 1] == '\n')
            line.n--;
        if (line.n > 5 && memcmp(line.p, "path=", 5) == 0)
            TRY(set_path(t, (struct span){line.p + 5, line.n - 5}, e));
        if (line.n > 5 && memcmp(line.p, "size=", 5) == 0) {
            t->size = 0;
            for (size_t i = 5; i < line.n && line.p[i] >= '0' && line.p[i] <= '9' && t->size < UINT64_MAX / 100; i++)
                t->size = t->size * 10 + (uint64_t)(line.p[i] - '0');
            t->has_size = true;
        }
        p += n;
    }
    return 0;
}

static int set_name(struct tar *t, const char *head, struct err *e)
{
    size_t prefix = strnlen(head + 345, 155), name = strnlen(head, 100);

    if (t->has_path)
        return 0;
    buf_clear(&t->path);
    if (memcmp(head + 257, "ustar", 6) == 0 && prefix)
        if (buf_put(&t->path, head + 345, prefix) < 0 || buf_putc(&t->path, '/') < 0)
            return no_memory(e);
    return buf_put(&t->path, head, name) < 0 ? no_memory(e) : 0;
}

int tar_next(struct tar *t, struct tar_member *m, struct err *e)
{
    char head[BLOCK];
    uint64_t size;
    int rc;

    if (t->ended)
        return 0;
    TRY(skip(t, t->left, e));
    t->left = 0;
    TRY(skip(t, t->padding, e));
    t->padding = 0;
    t->has_path = t->has_size = false;
    for (;;) {
        m->offset = t->at;
        rc = t->again ? 1 : take(t, head, BLOCK, e);
        if (rc < 0)
            return rc;
        if (t->again) {
            memcpy(head, t->head, BLOCK);
            m->offset -= BLOCK;
            t->again = false;
        }
        if (rc == 0 || is_empty(head)) { /* the end; what is behind it does not count */
            t->ended = true;
            return 0;
        }
        if (!is_header(head)) {
            uint64_t from = m->offset;
            while ((rc = take(t, head, BLOCK, e)) > 0 && !is_header(head))
                ;
            if (rc < 0)
                return rc;
            t->ended = rc == 0;
            t->again = rc > 0;
            memcpy(t->head, head, BLOCK);
            return err_set(e, ERR_FORMAT, "'%s' at byte %" PRIu64 ": no header of a tar archive", t->name, from);
        }
        size = number(head + 124, 12);
        if (head[156] != 'L' && head[156] != 'x')
            break;
        TRY(read_extended(t, size, e));
        if (head[156] == 'L')
            TRY(set_path(t, buf_span(&t->extended), e));
        else
            TRY(read_pax(t, e));
    }
    TRY(set_name(t, head, e));
    if (t->has_size)
        size = t->size;
    m->file = head[156] == '0' || head[156] == '\0' || head[156] == '7';
    if (strchr("123456", head[156]) && head[156]) /* links, devices and folders have no bytes */
        size = 0;
    if (t->path.n && t->path.p[t->path.n - 1] == '/')
        m->file = false;
    m->name = buf_span(&t->path);
    m->size = t->left = size;
    t->padding = size % BLOCK ? BLOCK - size % BLOCK : 0;
    return 1;
}

ssize_t tar_read(struct tar *t, void *p, size_t n, struct err *e)
{
    ssize_t k;

    if (n > t->left)
        n = (size_t)t->left;
    if (n == 0)
        return 0;
    k = t->read(t->arg, p, n, e);
    if (k > 0) {
        t->at += (uint64_t)k;
        t->left -= (uint64_t)k;
        return k;
    }
    t->left = t->padding = 0;
    t->ended = true;
    return k < 0 ? k : cut_short(t, e);
}
