#include "tokenize/spm_normal.h"

#include "base/utf8.h"

/* True if no rule is for a character of two bytes, nor begins with it and one of s->before. */
static bool is_plain_two(const struct spm_normal *s, unsigned c)
{
    char text[3] = {(char)(0xC0 | c >> 6), (char)(0x80 | (c & 63))};
    bool same = !(s->has_user && s->user.root[(uint8_t)text[0]]);

    if (same && !charsmap_touches(&s->map, (struct span){text, 2}))
        return true;
    for (unsigned b = 0; b < 256 && same; b++) {
        text[2] = (char)b;
        same = !s->before[b] || !charsmap_touches(&s->map, (struct span){text, 3});
    }
    return same;
}

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
    memset(s->before, 1, 128);
    for (unsigned c = 0xC0; c < 256; c++) {
        s->before[c] = true;
        for (unsigned b = 0; b < 128 && s->before[c]; b++)
            s->before[c] = !s->plain[b] || !charsmap_touches(&s->map, (struct span){(char[]){(char)b, (char)c}, 2});
    }
    for (unsigned c = 0x80; c < 0x800; c++)
        s->plain_two[c] = is_plain_two(s, c);
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

/* The plain character's length, in bytes, at p; 0: it is none. */
static size_t plain_length(const struct spm_normal *s, const char *p, const char *end)
{
    const uint8_t *q = (const uint8_t *)p;

    if (q[0] < 0x80)
        return s->plain[q[0]] && (p + 1 == end || s->before[q[1]]);
    if (q[0] < 0xC2 || q[0] > 0xDF || end - p < 2 || (q[1] & 0xC0) != 0x80)
        return 0;
    return s->plain_two[(q[0] & 31u) << 6 | (q[1] & 63u)] && (p + 2 == end || s->before[q[2]]) ? 2 : 0;
}

/* Takes text that no rule touches off `in`, CHUNK bytes at most; *space: a space came last.
 * o has room for three bytes a byte. */
static char *put_plain(const struct spm_normal *s, struct span *in, char *o, bool *space)
{
    char *(*put)(const struct spm_normal *, struct span *, size_t, char *, bool *) = ISA_PICK(spm_put_plain);
    const char *end = in->p + in->n, *stop = in->n < CHUNK ? end : in->p + CHUNK;
    size_t n = 0;

    o = put(s, in, CHUNK, o, space);
    for (const char *p = in->p; p < stop && (n = plain_length(s, p, end)) > 0; p = in->p) {
        bool is_space = *p == ' ';
        if (is_space && !*space)
            o = put_space(s, o);
        else if (!is_space)
            o = (char *)memcpy(o, p, n) + n;
        *space = is_space && s->remove_extra;
        *in = (struct span){p + n, in->n - n};
        if (n == 2 && in->p < stop && !(*in->p & 0x80))
            o = put(s, in, (size_t)(stop - in->p), o, space);
    }
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
