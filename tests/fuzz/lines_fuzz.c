/* Lines of a file of any bytes, JSON or text; of JSON what is read from behind any block is what was read there at first, and
 * ranges share the lines of a plain file.  The first two bytes choose the form, the size of blocks, and the longest line. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BLOCKS = 64 }; /* from so many reading goes on */
static char path[] = "/tmp/lines_fuzz.XXXXXX";
static char *paths[] = {path, path};

static void need(bool holds)
{
    if (!holds)
        abort();
}

static void remove_file(void)
{
    unlink(path);
}

static void put(const uint8_t *data, size_t size)
{
    FILE *f = fopen(path, "w");

    need(f && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

/* Lines in a form to compare; blocks: with where each ends. */
static void describe(const struct line_block *b, bool blocks, struct buf *to)
{
    for (size_t i = 0; i < b->n; i++) {
        const struct line *x = &b->line[i];
        need(buf_printf(to, "%zu %d %s|", (size_t)x->offset, x->plain, x->fault ? x->fault : "") == 0 &&
             buf_put_span(to, x->text) == 0);
    }
    if (blocks)
        need(buf_printf(to, "-- %zu\n", (size_t)b->next.offset) == 0);
}

/* All that is left, its places (at most BLOCKS) and where each block began in the description.  The number of blocks, or -1. */
static int read_all(struct lines_in *l, bool blocks, struct buf *to, struct lines_place *place, size_t *at)
{
    struct line_block b = {0};
    struct err e;
    int n = 0, rc;

    while ((rc = lines_fill(l, &b, &e)) == 0 && b.n) {
        describe(&b, blocks, to);
        if (place && n < BLOCKS) {
            place[n] = b.next;
            at[n++] = to->n;
        }
    }
    line_block_free(&b);
    lines_close(l);
    return rc < 0 ? -1 : n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct lines_in conf = {.paths = paths, .n_paths = 1}, l;
    struct lines_place place[BLOCKS];
    size_t at[BLOCKS];
    struct buf all = {0}, some = {0};
    static int fd = -1; /* of the file, made once */
    int n;

    if (fd < 0)
        need((fd = mkstemp(path)) >= 0 && atexit(remove_file) == 0);
    if (size < 2)
        return 0;
    conf.form = data[0] & 1 ? LINES_AUTO : LINES_JSON;
    conf.block_bytes = 1 + data[0] * 8u;
    conf.max_line = data[1] ? data[1] * 16u : 0;
    put(data + 2, size - 2);
    l = conf;
    n = read_all(&l, true, &all, place, at);
    if (conf.form == LINES_AUTO)
        n = 0;
    for (int i = 0; i < n; i++) {
        struct err e;
        l = conf;
        need(lines_goto(&l, &place[i], &e) == 0);
        need(read_all(&l, true, &some, NULL, NULL) == 0);
        need(some.n == all.n - at[i] && memcmp(some.p ? some.p : "", all.p + at[i], some.n) == 0);
        buf_clear(&some);
    }
    buf_clear(&all);
    l = conf;
    if (conf.form == LINES_JSON && read_all(&l, false, &all, NULL, NULL) == 0) {
        struct lines_range half[] = {{0, size / 2}, {size / 2, UINT64_MAX}};
        conf.n_paths = 2;
        conf.range = half;
        if (read_all(&conf, false, &some, NULL, NULL) == 0) /* it is a plain file */
            need(some.n == all.n && memcmp(some.p ? some.p : "", all.p ? all.p : "", all.n) == 0);
    }
    buf_free(&all);
    buf_free(&some);
    return 0;
}
