/* An expression, a NUL and a text: the table made of the one cuts the other as PCRE2 does. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tokenize/split_pcre.h"
#include "tokenize/split_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EXPRESSION_MOST = 200, TEXT_MOST = 5000 };

/* Ends of pieces by PCRE2; false: it gives up. */
static bool cut(const struct split_pcre *x, const uint8_t *text, size_t n, struct buf *ends)
{
    size_t done = 0, bounds[2];

    while (done < n) {
        int found = split_pcre_match(x, text, n, done, false, bounds, NULL);
        if (found < 0)
            return false;
        if (found == 0)
            bounds[0] = bounds[1] = n;
        for (int k = 0; k < 2; k++)
            if (bounds[k] > done) {
                done = bounds[k];
                buf_put(ends, &(uint32_t){(uint32_t)done}, 4);
            }
    }
    return true;
}

static void compare(const struct split_table *t, const struct split_pcre *x, const uint8_t *text, size_t n)
{
    struct split_scan_state s = {0};
    uint32_t some[128 + 64];
    struct split_run r = {.ends = some, .max = 128};
    struct buf want = {0}, got = {0};

    if (cut(x, text, n, &want)) {
        for (; r.at < n; buf_put(&got, some, r.n * sizeof *some)) {
            r.n = 0;
            ISA_PICK(split_table_run)(t, text, n, &s, &r);
        }
        if (!span_eq(buf_span(&want), buf_span(&got)))
            abort();
    }
    buf_free(&want);
    buf_free(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, '\0', size);
    struct split_step step = {.expression = (const char *)data};
    struct split_table *t = NULL;
    struct split_pcre *x = NULL;
    struct err e;

    if (!end || end - data > EXPRESSION_MOST)
        return 0;
    for (int oniguruma = 0; oniguruma < 2; oniguruma++) {
        struct span text = {(const char *)end + 1, size - (size_t)(end + 1 - data)};
        step.oniguruma = oniguruma;
        /* As in use: PCRE2 has to know it first; and bytes that are no UTF-8 are no character to PCRE2. */
        if (utf8_valid(text) && text.n <= TEXT_MOST && split_pcre_new(&x, step.expression, oniguruma, &e) == 0 &&
            split_table_make(&t, &step, 1) == 1)
            compare(t, x, end + 1, text.n);
        split_table_free(t);
        split_pcre_free(x);
        t = NULL;
        x = NULL;
    }
    return 0;
}
