/* Any bytes as an export: cut into pages, in steps of any size and over damage, and parsed. */
#include <stdint.h>
#include <stdlib.h>

#include "curate/wiki/wiki_dump.h"
#include "curate/wiki/wiki_site.h"
#include "tests/given_bytes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct buf bytes;
    static struct wiki_site site;
    struct given_bytes b = {.all = {(const char *)data, size}, .step = size % 61 + 1,
                            .broken = size % 3 ? SIZE_MAX : size / 2, .ends = size / 2 & 1};
    const struct xml_input in = given_input(&b);
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
        wiki_site_parse(&site, piece.head, &e);
        wiki_page_parse(&page, piece.page, &bytes, &e);
    }
    wiki_dump_close(d);
    return 0;
}
