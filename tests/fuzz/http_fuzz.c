/* A response's block: head, codings, charset.  What comes out is valid UTF-8. */
#include <stdint.h>
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/archive/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct page_reader reader;
    struct span block = {(const char *)data, size}, value;
    struct http_head head;
    struct page page;
    struct err e;
    int rc;

    if (!reader.http && page_reader_open(&reader, &e) < 0)
        abort();
    http_parse_head(block, &head);
    if (head.length > size)
        abort();
    for (size_t at = 0, was = 0; http_field(block, &head, "Link", &at, &value); was = at) {
        struct span target = http_link(value, "license");
        if (at <= was || at > head.length || target.n > value.n)
            abort();
    }
    rc = page_decode(&reader, block, &head, (struct span){0}, true, 1 << 20, &page, &e);
    if (rc < 0 && rc != ERR_LIMIT)
        abort();
    if (rc == 0 && (!utf8_valid(page.utf8) || (page.utf8.n && memchr(page.utf8.p, 0, page.utf8.n)) ||
                    page.entity.n > 1 << 20))
        abort();
    return 0;
}
