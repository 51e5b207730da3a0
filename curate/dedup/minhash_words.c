#include "curate/dedup/minhash_words.h"

#include <stdlib.h>
#include <unicode/uchar.h>

#include "base/hash.h"
#include "curate/text/chars.h"
#include "base/digest.h"
#include "curate/text/py_chars.h"

/* Room for n words and as many hashes. */
static int make_room(struct minhash_words *w, size_t n)
{
    if (n + 1 > w->start_cap) {
        free(w->start);
        free(w->hash);
        w->start_cap = n + n / 4 + 64;
        w->start = calloc(w->start_cap, sizeof *w->start);
        w->hash = malloc(w->start_cap * sizeof *w->hash);
        if (!w->start || !w->hash) {
            w->start_cap = 0;
            return ERR_NOMEM;
        }
    }
    return 0;
}

/* Finds the words of w->text, each with a space behind it. */
static int find_words(struct minhash_words *w, size_t *n)
{
    const char *p = w->text.p, *end = p + w->text.n;
    size_t spaces = 0;

    for (; p < end; p++)
        spaces += *p == ' ';
    TRY(make_room(w, spaces));
    *n = 0;
    w->start[0] = 0;
    for (p = w->text.p; p < end; p++)
        if (*p == ' ')
            w->start[++*n] = (uint32_t)(p + 1 - w->text.p);
    return 0;
}

static uint64_t xxh3_low(struct span s)
{
    return (uint32_t)hash_xxh3_64(s);
}

static int hash_windows(struct minhash_words *w, size_t width, uint64_t (*hash)(struct span s), size_t *count)
{
    size_t n;

    TRY(find_words(w, &n));
    *count = n < width ? 0 : n - width + 1;
    for (size_t i = 0; i < *count; i++)
        w->hash[i] = hash((struct span){w->text.p + w->start[i], w->start[i + width] - 1 - w->start[i]});
    return 0;
}

/* One character in lower case, or a space. */
static int put_lower(struct buf *b, const uint8_t *class, struct span text, const char *p, uint32_t c)
{
    char utf8[4];

    if (c == 0x130) /* an i and a dot above, which is no \w */
        return buf_puts(b, "i ");
    c = c == 0x3a3 ? chars_lower_sigma(text, p) : (uint32_t)u_tolower((UChar32)c);
    if (!(class[c] & PY_WORD))
        return buf_putc(b, ' ');
    return buf_put(b, utf8, (size_t)utf8_put(utf8, c));
}

static int lower_words(struct minhash_words *w, struct span text)
{
    const uint8_t *class = py_chars();
    const char *p = text.p, *end = p + text.n;

    if (!class)
        return ERR_NOMEM;
    buf_clear(&w->text);
    TRY(buf_reserve(&w->text, text.n + 1));
    for (int n; p < end; p += n) {
        uint32_t c = chars_decode(p, &n);
        TRY(put_lower(&w->text, class, text, p, c));
    }
    return buf_putc(&w->text, ' ');
}

int minhash_words_text_dedup(struct minhash_words *w, struct span text, size_t width, size_t *count, struct err *e)
{
    *count = 0;
    if (lower_words(w, text) < 0 || hash_windows(w, width, xxh3_low, count) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the words of a text of %zu bytes", text.n);
    return 0;
}

int minhash_words_rpv2(struct minhash_words *w, struct span text, size_t width, size_t *count, struct err *e)
{
    *count = 0;
    TRY(rpv2_text_set(&w->rpv2, text, NULL, NULL, e));
    buf_clear(&w->text);
    if ((w->rpv2.norm.n && (buf_put_span(&w->text, buf_span(&w->rpv2.norm)) < 0 || buf_putc(&w->text, ' ') < 0)) ||
        hash_windows(w, width, digest_sha1_32, count) < 0)
        return err_set(e, ERR_NOMEM, "out of memory for the words of a text of %zu bytes", text.n);
    return 0;
}

struct span minhash_words_text(const struct minhash_words *w)
{
    return (struct span){w->text.p, w->text.n ? w->text.n - 1 : 0};
}

void minhash_words_free(struct minhash_words *w)
{
    buf_free(&w->text);
    rpv2_text_free(&w->rpv2);
    free(w->start);
    free(w->hash);
}
