#include "curate/dedup/minhash_words.h"

#include <unicode/uchar.h>

#include "curate/text/chars.h"
#include "curate/text/py_chars.h"

int minhash_words_text_dedup(struct span text, struct minhash_row *row)
{
    const uint8_t *class = py_chars();
    const char *p = text.p, *end = p + text.n;

    if (!class)
        return ERR_NOMEM;
    TRY(row_begin(row, 2 * text.n, text.n)); /* lower case: at most 3 bytes for 2 */
    for (int n; p < end; p += n) {
        uint32_t c = chars_decode(p, &n);
        uint32_t low = c == 0x3a3 ? chars_lower_sigma(text, p) : c == 0x130 ? 'i' : (uint32_t)u_tolower((UChar32)c);

        if (class[low] & PY_WORD)
            row->used += (size_t)utf8_put(row->text + row->used, low);
        else
            row_end(row);
        if (c == 0x130) /* the dot above is no \w */
            row_end(row);
    }
    row_end(row);
    return 0;
}

int minhash_words_rpv2(struct rpv2_text *t, struct span text, struct minhash_row *row)
{
    struct err e;

    TRY(rpv2_text_set(t, text, NULL, NULL, &e));
    TRY(row_begin(row, t->norm.n + 1, t->norm.n));
    for (size_t i = 0; i < t->norm.n; i++) {
        if (t->norm.p[i] == ' ')
            row_end(row);
        else
            row->text[row->used++] = t->norm.p[i];
    }
    if (t->norm.n)
        row_end(row);
    return 0;
}
