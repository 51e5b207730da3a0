#include "curate/dedup/dedup_normal.h"

#include <stdlib.h>
#include <unicode/uchar.h>
#include <unicode/unorm2.h>
#include <unicode/ustring.h>

#include "curate/text/chars.h"

int normal_space(struct span text, struct buf *out)
{
    const uint16_t *class = chars_classes();
    const char *p = text.p, *end = p + text.n;
    bool gap = false;
    size_t from = out->n;
    int n;

    if (!class || buf_reserve(out, text.n + 1) < 0)
        return ERR_NOMEM;
    while (p < end) {
        if (class[chars_decode(p, &n)] & CHAR_SPACE) {
            gap = out->n > from;
        } else {
            if (gap)
                out->p[out->n++] = ' ';
            memcpy(out->p + out->n, p, (size_t)n);
            out->n += (size_t)n;
            gap = false;
        }
        p += n;
    }
    return 0;
}

void normal_free(struct normal_scratch *s)
{
    free(s->text);
    free(s->folded);
    *s = (struct normal_scratch){0};
}

/* ASCII needs no library. */
static bool fold_ascii(struct span text, struct buf *out)
{
    size_t from = out->n;

    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c >= 0x80) {
            out->n = from;
            return false;
        }
        if (c >= 'A' && c <= 'Z')
            c |= 0x20;
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out->p[out->n++] = (char)c;
    }
    return true;
}

/* Those code points of u that are letters, marks or numbers. */
static int put_words(const uint16_t *u, int32_t n, struct buf *out)
{
    if (buf_reserve(out, (size_t)n * 3 + 4) < 0)
        return ERR_NOMEM;
    for (int32_t i = 0; i < n;) {
        UChar32 c;

        U16_NEXT(u, i, n, c);
        if (!(U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK)))
            continue;
        int32_t k = 0;
        U8_APPEND_UNSAFE((uint8_t *)out->p + out->n, k, c);
        out->n += (size_t)k;
    }
    return 0;
}

int normal_words(struct span text, struct normal_scratch *s, struct buf *out, struct err *e)
{
    UErrorCode u = U_ZERO_ERROR;
    const UNormalizer2 *fold = unorm2_getNFKCCasefoldInstance(&u);
    int32_t n = 0, m;

    if (U_FAILURE(u))
        return err_set(e, ERR_UNSUPPORTED, "ICU has no normalisation data: %s", u_errorName(u));
    if (text.n >= 1u << 29)
        return err_set(e, ERR_LIMIT, "text of %zu bytes: normalisation takes less than 2^29", text.n);
    if (buf_reserve(out, text.n + 1) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
    if (fold_ascii(text, out))
        return 0;
    if (mem_room(&s->text, &s->cap_text, text.n + 1, sizeof(uint16_t)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
    u_strFromUTF8(s->text, (int32_t)s->cap_text, &n, text.p, (int32_t)text.n, &u);
    if (U_FAILURE(u))
        return err_set(e, ERR_FORMAT, "cannot normalise a text: %s", u_errorName(u));
    if (!s->folded && mem_room(&s->folded, &s->cap_folded, (size_t)n + 64, sizeof(uint16_t)) < 0)
        return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
    m = unorm2_normalize(fold, s->text, n, s->folded, (int32_t)s->cap_folded, &u);
    if (u == U_BUFFER_OVERFLOW_ERROR) {
        u = U_ZERO_ERROR;
        if (mem_room(&s->folded, &s->cap_folded, (size_t)m + 1, sizeof(uint16_t)) < 0)
            return err_set(e, ERR_NOMEM, "out of memory to normalise a text");
        m = unorm2_normalize(fold, s->text, n, s->folded, (int32_t)s->cap_folded, &u);
    }
    if (U_FAILURE(u))
        return err_set(e, ERR_FORMAT, "cannot normalise a text: %s", u_errorName(u));
    return put_words(s->folded, m, out) < 0 ? err_set(e, ERR_NOMEM, "out of memory to normalise a text") : 0;
}
