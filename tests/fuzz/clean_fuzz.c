/* Any bytes through cleaning: the result is valid, and clean; and personal data replaced
 * once is gone. */
#include <stdlib.h>

#include "base/utf8.h"
#include "curate/clean/clean.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span copy_of(struct span s)
{
    char *copy = malloc(s.n + 1);

    if (!copy)
        abort();
    if (s.n)
        memcpy(copy, s.p, s.n);
    return (struct span){copy, s.n};
}

static void replace_twice(struct span text)
{
    static const struct pii_conf confs[] = {{"all", PII_PRESET_NONE, PII_TAG}, {NULL, PII_PRESET_DATATROVE, NULL}};
    static struct buf a, b;
    struct err e;

    for (int i = 0; i < 2; i++) {
        uint64_t count[PII_KINDS] = {0};
        struct pii p;
        struct span once, twice;

        if (pii_init(&p, &confs[i], &e) < 0 || pii_replace(&p, &a, &b, text, &once, count) < 0 || !utf8_valid(once))
            abort();
        once = copy_of(once);
        if (pii_replace(&p, &a, &b, once, &twice, count) < 0 || (i == 0 && twice.p != once.p))
            abort();
        free((void *)(uintptr_t)once.p);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct clean c;
    struct clean_conf conf;
    struct span once, twice, text = {(const char *)data + 2, size - 2};
    struct err e;

    if (size < 2)
        return 0;
    clean_conf_init(&conf);
    conf.form = data[0] & 1 ? CLEAN_NFKC : CLEAN_NFC;
    conf.bidi = data[0] & 2;
    conf.spaces = !(data[0] & 4);
    conf.newlines = !(data[0] & 8);
    conf.controls = !(data[0] & 16);
    conf.blank_lines = data[0] >> 6;
    conf.repair.mojibake = !(data[1] & 1);
    conf.repair.unescape = (data[1] >> 1 & 3) % 3;
    conf.repair.quotes = data[1] >> 3 & 1;
    conf.repair.ligatures = data[1] & 16;
    conf.repair.width = data[1] & 32;
    if (clean_text(&c, &conf, text, &once, &e) < 0 || !utf8_valid(once))
        abort();
    once = copy_of(once);
    if (clean_text(&c, &conf, once, &twice, &e) < 0 || !span_eq(once, twice))
        abort();
    replace_twice(once);
    free((void *)(uintptr_t)once.p);
    return 0;
}
