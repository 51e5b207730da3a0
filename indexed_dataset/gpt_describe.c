#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/node.h"
#include "base/utf8.h"
#include "indexed_dataset/gpt_index.h"
#include "indexed_dataset/md5.h"

static const char *const split_name[GPT_SPLITS] = {"train", "valid", "test"};

/* ---- JSON as Python writes it: ASCII, a line an item ---- */

static int put_string(struct buf *b, struct span s)
{
    static const char letters[] = "\"\\\b\f\n\r\t", escapes[] = "\"\\bfnrt";
    const char *p = s.p, *end = s.p + s.n;
    int rc = buf_putc(b, '"');

    while (rc == 0 && p < end) {
        uint32_t c;
        p += utf8_next(p, end, &c);
        const char *l = c && c < 128 ? strchr(letters, (int)c) : NULL;
        if (l)
            rc = buf_printf(b, "\\%c", escapes[l - letters]);
        else if (c >= 0x20 && c < 0x7f)
            rc = buf_putc(b, (char)c);
        else if (c < 0x10000)
            rc = buf_printf(b, "\\u%04x", c);
        else
            rc = buf_printf(b, "\\u%04x\\u%04x", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF));
    }
    return rc ? rc : buf_putc(b, '"');
}

/* repr(): the shortest digits that read back, with a point or an exponent. */
static int put_float(struct buf *b, double v)
{
    char s[40];

    for (int digits = 1; digits <= 17; digits++) {
        snprintf(s, sizeof s, "%.*g", digits, v);
        if (strtod(s, NULL) == v)
            break;
    }
    /* %g changes to an exponent once the digits do not reach the point; repr at 1e16 */
    if (strchr(s, 'e') && v >= 1 && v < 1e16)
        snprintf(s, sizeof s, "%.0f", v);
    return buf_printf(b, "%s%s", s, strpbrk(s, ".e") ? "" : ".0");
}

static int put_line(struct buf *b, int indent)
{
    return buf_printf(b, "\n%*s", indent, "");
}

static int put_node(struct buf *b, const struct node *n, int indent)
{
    if (n->type == NODE_STR)
        return put_string(b, n->str);
    if (n->type != NODE_LIST && n->type != NODE_MAP)
        return buf_put_span(b, n->str);
    bool map = n->type == NODE_MAP;
    TRY(buf_putc(b, map ? '{' : '['));
    for (const struct node *c = n->child; c; c = c->next) {
        TRY(put_line(b, indent + 4));
        if (map) {
            TRY(put_string(b, c->key));
            TRY(buf_puts(b, ": "));
        }
        TRY(put_node(b, c, indent + 4));
        if (c->next)
            TRY(buf_putc(b, ','));
    }
    if (n->child)
        TRY(put_line(b, indent));
    return buf_putc(b, map ? '}' : ']');
}

/* ---- descriptions ---- */

static int put_matrix(struct buf *b, const struct gpt_index_conf *c, int indent)
{
    TRY(buf_putc(b, '['));
    for (int i = 0; i < GPT_SPLITS; i++) {
        TRY(put_line(b, indent + 4));
        if (c->lo[i] < c->hi[i]) {
            TRY(buf_putc(b, '['));
            TRY(put_line(b, indent + 8));
            /* the sum over no splits is Python's integer 0 */
            TRY(i == 0 ? buf_putc(b, '0') : put_float(b, c->lo[i]));
            TRY(buf_putc(b, ','));
            TRY(put_line(b, indent + 8));
            TRY(put_float(b, c->hi[i]));
            TRY(put_line(b, indent + 4));
            TRY(buf_putc(b, ']'));
        } else {
            TRY(buf_puts(b, "null"));
        }
        if (i + 1 < GPT_SPLITS)
            TRY(buf_putc(b, ','));
    }
    TRY(put_line(b, indent));
    return buf_putc(b, ']');
}

static int put_key(struct buf *b, const char *key, int indent)
{
    if (b->p[b->n - 1] != '{')
        TRY(buf_putc(b, ','));
    TRY(put_line(b, indent));
    return buf_printf(b, "\"%s\": ", key);
}

static int put_identifiers(struct buf *b, const struct gpt_index_conf *c, const struct node *tokenizer,
                           int indent)
{
    int in = indent + 4;

    TRY(buf_putc(b, '{'));
    TRY(put_key(b, "class", in));
    TRY(buf_puts(b, "\"GPTDataset\""));
    TRY(put_key(b, "dataset_path", in));
    TRY(put_string(b, span_of(c->path)));
    TRY(put_key(b, "num_samples", in));
    TRY(c->samples < 0 ? buf_puts(b, "null") : buf_printf(b, "%" PRId64, c->samples));
    TRY(put_key(b, "index_split", in));
    TRY(put_string(b, span_of(split_name[c->split])));
    TRY(put_key(b, "random_seed", in));
    TRY(buf_printf(b, "%" PRIu32, c->c->seed));
    TRY(put_key(b, "sequence_length", in));
    TRY(buf_printf(b, "%" PRId64, c->c->seq_length));
    TRY(put_key(b, "split", in));
    TRY(c->c->split ? put_string(b, span_of(c->c->split)) : buf_puts(b, "null"));
    TRY(put_key(b, "split_matrix", in));
    TRY(c->c->split ? put_matrix(b, c, in) : buf_puts(b, "null"));
    TRY(put_key(b, "tokenizer", in));
    TRY(tokenizer ? put_node(b, tokenizer, in) : buf_puts(b, "null"));
    TRY(put_line(b, indent));
    return buf_putc(b, '}');
}

int gpt_describe(struct buf *b, const struct gpt_index_conf *c, int indent, struct err *e)
{
    struct arena a = {0};
    struct node *tokenizer = NULL;
    int rc = 0;

    if (c->c->tokenizer) {
        rc = node_parse_json(&a, span_of(c->c->tokenizer), &tokenizer, e);
        if (rc < 0)
            err_wrap(e, "the description of the tokenizer");
    }
    if (rc == 0) {
        rc = put_identifiers(b, c, tokenizer, indent);
        if (rc < 0)
            err_set(e, rc, "out of memory");
    }
    arena_free(&a);
    return rc;
}

static int put_blend(struct buf *b, const struct gpt_index_conf *parts, int n, const double *weights,
                     int64_t size, struct err *e)
{
    TRY(buf_puts(b, "{\n    \"class\": \"BlendedDataset\",\n    \"datasets\": ["));
    for (int i = 0; i < n; i++) {
        TRY(put_line(b, 8));
        TRY(gpt_describe(b, &parts[i], 8, e));
        if (i + 1 < n)
            TRY(buf_putc(b, ','));
    }
    TRY(buf_printf(b, "\n    ],\n    \"split\": \"%s\",\n    \"weights\": [", split_name[parts[0].split]));
    for (int i = 0; i < n; i++) {
        TRY(put_line(b, 8));
        TRY(size < 0 ? buf_printf(b, "%.0f", weights[i]) : put_float(b, weights[i]));
        if (i + 1 < n)
            TRY(buf_putc(b, ','));
    }
    TRY(buf_puts(b, "\n    ],\n    \"size\": "));
    TRY(size < 0 ? buf_puts(b, "null") : buf_printf(b, "%" PRId64, size));
    return buf_puts(b, "\n}");
}

int gpt_describe_blend(struct buf *b, const struct gpt_index_conf *parts, int n, const double *weights,
                       int64_t size, struct err *e)
{
    err_set(e, ERR_NOMEM, "out of memory");
    return put_blend(b, parts, n, weights, size, e);
}

/* ---- the cache ---- */

void gpt_cache_name(char name[GPT_NAME_MAX], struct span description, const char *class,
                    enum gpt_split split)
{
    char hex[33];

    md5_hex(description, hex);
    snprintf(name, GPT_NAME_MAX, "%s-%s-%s", hex, class, split_name[split]);
}

static int cache_path(char path[IDX_PATH_MAX], const char *dir, const char *name, const char *end,
                      struct err *e)
{
    if (snprintf(path, IDX_PATH_MAX, "%s/%s-%s", dir, name, end) >= IDX_PATH_MAX)
        return err_set(e, ERR_ARG, "the name of the cache folder is too long: '%.80s...'", dir);
    return 0;
}

bool gpt_cache_has(const char *dir, const char *name, const char *const *prefix, int n)
{
    char path[IDX_PATH_MAX];
    struct stat made, data;

    if (cache_path(path, dir, name, "description.txt", NULL) < 0 || stat(path, &made) < 0)
        return false;
    for (int i = 0; i < n; i++)
        if (snprintf(path, sizeof path, "%.*s.idx", idx_prefix_length(prefix[i]), prefix[i]) >= (int)sizeof path ||
            stat(path, &data) < 0 ||
            data.st_mtim.tv_sec > made.st_mtim.tv_sec ||
            (data.st_mtim.tv_sec == made.st_mtim.tv_sec && data.st_mtim.tv_nsec > made.st_mtim.tv_nsec))
            return false;
    return true;
}

int gpt_cache_load(const char *dir, const char *name, const char *kind, struct npy *a,
                   enum npy_type type, int64_t rows, int64_t cols, struct err *e)
{
    char path[IDX_PATH_MAX], end[64];

    snprintf(end, sizeof end, "%s.npy", kind);
    TRY(cache_path(path, dir, name, end, e));
    return npy_load(a, path, type, rows, cols, e);
}

int gpt_cache_save(const char *dir, const char *name, const char *kind, const struct npy *a,
                   struct err *e)
{
    char path[IDX_PATH_MAX], end[64];

    snprintf(end, sizeof end, "%s.npy", kind);
    TRY(cache_path(path, dir, name, end, e));
    return npy_save(a, path, e);
}

int gpt_cache_describe(const char *dir, const char *name, struct span description, struct err *e)
{
    char path[IDX_PATH_MAX];

    TRY(cache_path(path, dir, name, "description.txt", e));
    return file_write_all(path, description, e);
}

/* DIR/.NAME.lock, which goes when the work is done; the lock itself goes with the process. */
int gpt_cache_lock(const char *dir, const char *name)
{
    char path[IDX_PATH_MAX];
    struct stat a, b;

    if (gpt_cache_make(dir, NULL) < 0 ||
        snprintf(path, sizeof path, "%s/.%s.lock", dir, name) >= (int)sizeof path)
        return -1;
    for (;;) {
        int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), rc;
        if (fd < 0)
            return -1;
        do
            rc = flock(fd, LOCK_EX);
        while (rc < 0 && errno == EINTR);
        if (rc < 0) {
            close(fd);
            return -1;
        }
        /* The one who had it may have removed it since we opened it. */
        if (fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_ino == b.st_ino && a.st_dev == b.st_dev)
            return fd;
        close(fd);
    }
}

void gpt_cache_unlock(const char *dir, const char *name, int lock)
{
    char path[IDX_PATH_MAX];

    if (lock < 0)
        return;
    if (snprintf(path, sizeof path, "%s/.%s.lock", dir, name) < (int)sizeof path)
        unlink(path);
    close(lock);
}

int gpt_cache_make(const char *dir, struct err *e)
{
    char path[IDX_PATH_MAX];

    if (snprintf(path, sizeof path, "%s", dir) >= (int)sizeof path)
        return err_set(e, ERR_ARG, "the name of the cache folder is too long: '%.80s...'", dir);
    for (char *p = path + 1;; p++) {
        char was = *p;
        if (was != '/' && was)
            continue;
        *p = '\0';
        if (mkdir(path, 0777) < 0 && errno != EEXIST)
            return err_sys(e, ERR_IO, "cannot make the folder '%s'", path);
        *p = was;
        if (!was)
            return 0;
    }
}
