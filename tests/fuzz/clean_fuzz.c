/* Any bytes through cleaning: the result is valid, and clean. */
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/clean.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct clean c;
    struct clean_conf conf;
    struct span once, twice, text = {(const char *)data + 1, size - 1};
    struct err e;
    char *copy;

    if (!size)
        return 0;
    clean_conf_init(&conf);
    conf.form = data[0] & 1 ? CLEAN_NFKC : CLEAN_NFC;
    conf.bidi = data[0] & 2;
    conf.spaces = !(data[0] & 4);
    conf.newlines = !(data[0] & 8);
    conf.controls = !(data[0] & 16);
    conf.blank_lines = data[0] >> 6;
    if (clean_text(&c, &conf, text, &once, &e) < 0 || !utf8_valid(once))
        abort();
    copy = malloc(once.n + 1);
    if (!copy)
        return 0;
    if (once.n)
        memcpy(copy, once.p, once.n);
    once.p = copy;
    if (clean_text(&c, &conf, once, &twice, &e) < 0 || !span_eq(once, twice))
        abort();
    free(copy);
    return 0;
}
