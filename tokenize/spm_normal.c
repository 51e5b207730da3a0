#include "tokenize/spm_normal.h"

#include "base/utf8.h"

void spm_normal_finish(struct spm_normal *s)
{
    for (unsigned b = 0; b < 128; b++) {
        char two[2] = {(char)b, 0};
        bool same = !(s->has_user && s->user.root[b]);
        for (unsigned c = 0; c < 128 && same; c++) {
            two[1] = (char)c;
            same = !charsmap_touches(&s->map, (struct span){two, 2});
        }
        s->plain[b] = same;
    }
}

void spm_normal_free(struct spm_normal *s)
{
    charsmap_free(&s->map);
    trie_free(&s->user);
}

/* What the text at p becomes; the length taken in *n. */
static struct span prefix(const struct spm_normal *s, struct span in, size_t *n)
{
    struct span text;
    uint32_t cp;

    if (s->has_user && trie_longest(&s->user, in.p, in.n, n) != TRIE_NONE)
        return (struct span){in.p, *n};
    if (charsmap_find(&s->map, in, true, &text, n))
        return text;
    *n = (size_t)utf8_next(in.p, in.p + in.n, &cp);
    if (cp == 0xFFFD && !(*n == 3 && memcmp(in.p, "\xef\xbf\xbd", 3) == 0)) {
        *n = 1;
        return span_of("\xef\xbf\xbd");
    }
    return (struct span){in.p, *n};
}

static char *put_space(const struct spm_normal *s, char *o)
{
    if (!s->escape) {
        *o = ' ';
        return o + 1;
    }
    memcpy(o, SPACE_MARK, 3);
    return o + 3;
}

enum { CHUNK = 1 << 16 };

/* Takes text that no rule touches off `in`, CHUNK bytes at most; *space: a space came last.
 * o has room for three bytes a byte. */
static char *put_plain(const struct spm_normal *s, struct span *in, char *o, bool *space)
{
    const char *p, *end = in->p + in->n, *stop = in->n < CHUNK ? end : in->p + CHUNK;

    o = ISA_PICK(spm_put_plain)(s, in, CHUNK, o, space);
    p = in->p;
    while (p < stop && (unsigned char)*p < 128 && s->plain[(unsigned char)*p] &&
           (p + 1 == end || (unsigned char)p[1] < 128)) {
        if (*p == ' ') {
            if (!*space)
                o = put_space(s, o);
            *space = s->remove_extra;
        } else {
            *o++ = *p;
            *space = false;
        }
        p++;
    }
    in->n -= (size_t)(p - in->p);
    in->p = p;
    return o;
}

/* Appends sp, without the spaces in front of it if one came before. */
static int put_text(const struct spm_normal *s, struct span sp, struct buf *out, bool *space)
{
    while (*space && sp.n && *sp.p == ' ') {
        sp.p++;
        sp.n--;
    }
    TRY(buf_reserve(out, sp.n * 3));
    for (size_t i = 0; i < sp.n; i++) {
        if (sp.p[i] == ' ')
            out->n = (size_t)(put_space(s, out->p + out->n) - out->p);
        else
            out->p[out->n++] = sp.p[i];
    }
    if (sp.n)
        *space = s->remove_extra && sp.p[sp.n - 1] == ' ';
    return 0;
}

int spm_normalize(const struct spm_normal *s, struct span in, struct buf *out, struct err *e)
{
    struct span mark = span_of(s->escape ? SPACE_MARK : " ");
    bool space = s->remove_extra;
    size_t begin = out->n, n;
    int rc = 0;

    while (s->remove_extra && in.n && span_is(prefix(s, in, &n), " ")) {
        in.p += n;
        in.n -= n;
    }
    if (!in.n)
        return 0;
    if (!s->suffix && s->dummy_prefix)
        rc = buf_put_span(out, mark);
    while (rc == 0 && in.n) {
        rc = buf_reserve(out, (in.n < CHUNK ? in.n : CHUNK) * 3);
        if (rc == 0)
            out->n = (size_t)(put_plain(s, &in, out->p + out->n, &space) - out->p);
        if (rc == 0 && in.n) {
            rc = put_text(s, prefix(s, in, &n), out, &space);
            in.p += n;
            in.n -= n;
        }
    }
    while (s->remove_extra && out->n - begin >= mark.n && memcmp(out->p + out->n - mark.n, mark.p, mark.n) == 0)
        out->n -= mark.n;
    if (rc == 0 && s->suffix && s->dummy_prefix)
        rc = buf_put_span(out, mark);
    return rc < 0 ? err_set(e, rc, "out of memory for a text") : 0;
}
