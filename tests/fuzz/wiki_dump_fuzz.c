/* Any bytes as an export: cut into pages, in steps of any size and over damage, and parsed. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "curate/wiki/wiki_dump.h"
#include "curate/wiki/wiki_site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *p;
    size_t at, n, step, broken;
};

static ssize_t take(void *of, void *p, size_t n, struct err *e)
{
    struct bytes *b = of;

    if (b->at >= b->broken)
        return err_set(e, ERR_FORMAT, "damaged");
    n = n > b->step ? b->step : n;
    n = n > b->n - b->at ? b->n - b->at : n;
    memcpy(p, b->p + b->at, n);
    b->at += n;
    return (ssize_t)n;
}

static int resume(void *of, struct err *e)
{
    struct bytes *b = of;

    (void)e;
    b->broken = SIZE_MAX;
    return b->at & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct arena arena;
    static struct wiki_site site;
    struct bytes b = {.p = data, .n = size, .step = size % 61 + 1, .broken = size % 3 ? SIZE_MAX : size / 2};
    struct wiki_input in = {.read = take, .resume = resume, .of = &b, .name = "fuzz"};
    struct wiki_dump *d;
    struct wiki_piece piece;
    struct wiki_page page;
    struct err e;
    size_t calls = 0;
    int rc;

    wiki_dump_is((struct span){(const char *)data, size});
    if (wiki_dump_open(&d, &in, 4096, &e) < 0)
        abort();
    while ((rc = wiki_dump_next(d, &piece, &e)) != 0) {
        if ((rc != 1 && rc != ERR_FORMAT) || ++calls > 2 * size + 3)
            abort(); /* it must move on */
        if (rc != 1)
            continue;
        if (piece.page.n > 4096 + 100)
            abort();
        arena_reset(&arena);
        wiki_site_parse(&site, piece.head, &e);
        wiki_page_parse(&page, piece.page, &arena, &e);
    }
    wiki_dump_close(d);
    return 0;
}
