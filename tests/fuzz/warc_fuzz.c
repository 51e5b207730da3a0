/* Archives: every byte string is read to its end, in bounded memory. */
#include <stdint.h>
#include <stdlib.h>

#include "curate/archive/page.h"
#include "curate/archive/warc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span s = {(const char *)data, size};
    struct file_in *f;
    struct warc *w;
    struct warc_record r;
    struct http_head head;
    struct err e;
    uint64_t last = 0;
    size_t calls = 0;
    int rc;

    if (file_open_mem(&f, "fuzz", s, &e) < 0)
        return 0;
    if (warc_open(&w, f, 1 << 20, &e) < 0)
        abort();
    while ((rc = warc_next(w, &r, &e)) != 0) {
        if (rc != 1 && rc != ERR_FORMAT)
            break; /* the dictionary of a zstd file may ask for too much */
        if (r.offset < last || ++calls > 1000000)
            abort(); /* it must move on */
        last = r.offset;
        if (r.block.n && r.block.p[r.block.n - 1] == 1)
            calls++;
        page_judge(&r, &head);
    }
    warc_close(w);
    file_close(f);
    return 0;
}
