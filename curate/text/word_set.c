#include "curate/text/word_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "curate/text/chars.h"

void word_set_free(struct word_set *s)
{
    buf_free(&s->text);
    free(s->slot);
    free(s->tag);
    memset(s, 0, sizeof *s);
}

size_t word_set_alnum(char *p, size_t n)
{
    size_t k = 0;

    for (size_t i = 0; i < n; i++) {
        char c = p[i];
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
            p[k++] = (char)(c >= 'A' && c <= 'Z' ? c | 32 : c);
    }
    return k;
}

static struct span entry_at(const struct word_set *s, uint32_t slot)
{
    const char *p = s->text.p + slot - 1;
    struct span w = {p, (size_t)((const char *)memchr(p, '\n', s->text.n - slot + 1) - p)};

    return w;
}

/* The slot where word is or would be. */
static uint32_t find(const struct word_set *s, struct span word, uint32_t *tag)
{
    uint64_t h = hash_xxh3_64(word);
    uint32_t i = (uint32_t)h & s->mask;

    *tag = (uint32_t)(h >> 32);
    for (; s->slot[i]; i = (i + 1) & s->mask) {
        const char *p = s->text.p + s->slot[i] - 1;
        /* the text ends in a newline, and what is equal so far has none */
        if (s->tag[i] == *tag && word.n < s->text.n - s->slot[i] + 1 && memcmp(p, word.p, word.n) == 0 &&
            p[word.n] == '\n')
            break;
    }
    return i;
}

bool word_set_has(const struct word_set *s, struct span word)
{
    uint32_t tag;

    return s->n && word.n && !memchr(word.p, '\n', word.n) && s->slot[find(s, word, &tag)] != 0;
}

bool word_set_next(const struct word_set *s, size_t *at, struct span *word)
{
    while (s->n && *at <= s->mask) {
        uint32_t slot = s->slot[(*at)++];
        if (slot) {
            *word = entry_at(s, slot);
            return true;
        }
    }
    return false;
}

/* Leaves the entries, each with a newline behind, at the front of the text. */
static size_t pack(struct buf *b, word_set_form *form)
{
    char *out = b->p, *p = b->p, *end = b->p + b->n;
    size_t n = 0;

    while (p < end) {
        char *q = memchr(p, '\n', (size_t)(end - p));
        struct span w = {p, (size_t)((q ? q : end) - p)};

        p = q ? q + 1 : end;
        w = chars_strip(w);
        if (!w.n || w.p[0] == '#')
            continue;
        memmove(out, w.p, w.n);
        if (form && !(w.n = form(out, w.n)))
            continue;
        out += w.n;
        *out++ = '\n';
        n++;
    }
    b->n = (size_t)(out - b->p);
    return n;
}

int word_set_take(struct word_set *s, struct buf *text, word_set_form *form, struct err *e)
{
    size_t size = 16, n;

    *s = (struct word_set){.text = *text};
    *text = (struct buf){0};
    if (s->text.n >= UINT32_MAX) {
        word_set_free(s);
        return err_set(e, ERR_LIMIT, "a list of 4 GiB or more");
    }
    n = buf_reserve(&s->text, 1) < 0 ? 0 : pack(&s->text, form); /* room for the last newline */
    while (size < n + n / 2)
        size *= 2;
    s->mask = (uint32_t)size - 1;
    s->slot = calloc(size, sizeof *s->slot);
    s->tag = malloc(size * sizeof *s->tag);
    if (!s->text.p || !s->slot || !s->tag) {
        word_set_free(s);
        return err_set(e, ERR_NOMEM, "no memory for a list");
    }
    for (size_t at = 0; at < s->text.n;) {
        struct span w = entry_at(s, (uint32_t)at + 1);
        uint32_t tag, i = find(s, w, &tag);

        if (!s->slot[i]) {
            s->slot[i] = (uint32_t)at + 1;
            s->tag[i] = tag;
            s->n++;
        }
        at += w.n + 1;
    }
    return 0;
}

/* The line (from 1) of the first byte that is no UTF-8; 0: all is well. */
static size_t bad_line(struct span s)
{
    size_t line = 1;

    while (s.n) {
        const char *q = memchr(s.p, '\n', s.n);
        struct span l = {s.p, q ? (size_t)(q - s.p) : s.n};

        if (!utf8_valid(l))
            return line;
        s.p += l.n + (q != NULL);
        s.n -= l.n + (q != NULL);
        line++;
    }
    return 0;
}

int word_set_load(struct word_set *s, const char *path, word_set_form *form, struct err *e)
{
    struct buf b = {0};
    size_t line = 0;
    int rc = file_read_all(path, UINT32_MAX - 1, &b, e);

    if (rc == 0 && !utf8_valid(buf_span(&b))) {
        line = bad_line(buf_span(&b));
        rc = err_set(e, ERR_FORMAT, "'%s' line %zu: not UTF-8", path, line);
    }
    if (rc == 0 && utf8_without_mark(buf_span(&b)).n < b.n) {
        b.n -= 3;
        memmove(b.p, b.p + 3, b.n + 1); /* the NUL too */
    }
    if (rc == 0 && (rc = word_set_take(s, &b, form, e)) < 0)
        err_wrap(e, "'%s'", path);
    buf_free(&b);
    return rc;
}
