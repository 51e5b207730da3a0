#include "tokenize/added.h"

#include <stdlib.h>

#include "base/utf8.h"
#include "tokenize/hf_table.h"
#include "tokenize/ucd.h"

int added_add(struct added *a, const struct added_token *token, struct err *e)
{
    struct added_set *s = token->normalized ? &a->normalized : &a->raw;
    struct added_token *v = realloc(s->v, (s->n + 1) * sizeof *v);
    char *copy = malloc(token->text.n + 1);

    if (v)
        s->v = v;
    if (!v || !copy) {
        free(copy);
        return err_set(e, ERR_NOMEM, "out of memory for added tokens");
    }
    memcpy(copy, token->text.p, token->text.n);
    copy[token->text.n] = '\0';
    v[s->n] = *token;
    v[s->n].order = s->n;
    v[s->n++].text.p = copy;
    return 0;
}

/* By first byte, then the longest first. */
static int compare(const void *x, const void *y)
{
    const struct added_token *a = x, *b = y;
    int fa = (unsigned char)a->text.p[0], fb = (unsigned char)b->text.p[0];

    if (fa != fb)
        return fa - fb;
    if (a->text.n != b->text.n)
        return a->text.n < b->text.n ? 1 : -1;
    return a->order < b->order ? -1 : a->order > b->order;
}

static void finish(struct added_set *s)
{
    uint32_t at = 0;
    int firsts = 0;

    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, compare);
    s->specials_only = true;
    s->only_first = -1;
    for (int b = 0; b < 256; b++) {
        s->by_first[b] = at;
        while (at < s->n && (unsigned char)s->v[at].text.p[0] == b)
            s->specials_only &= s->v[at++].special;
        if (at > s->by_first[b]) {
            s->only_first = b;
            firsts++;
        }
    }
    s->by_first[256] = at;
    if (firsts != 1)
        s->only_first = -1;
}

void added_finish(struct added *a)
{
    finish(&a->raw);
    finish(&a->normalized);
}

/* The longest token at p, or NULL. */
static const struct added_token *token_at(const struct added_set *s, const char *p, size_t left)
{
    unsigned char b = (unsigned char)*p;

    for (uint32_t i = s->by_first[b]; i < s->by_first[b + 1]; i++)
        if (s->v[i].text.n <= left && memcmp(s->v[i].text.p, p, s->v[i].text.n) == 0)
            return &s->v[i];
    return NULL;
}

size_t added_skip_space(struct span text, size_t at)
{
    while (at < text.n) {
        uint32_t cp;
        int n = utf8_next(text.p + at, text.p + text.n, &cp);
        if (!(ucd_class(cp) & UCD_SPACE))
            break;
        at += (size_t)n;
    }
    return at;
}

size_t added_skip_space_back(struct span text, size_t at, size_t least)
{
    while (at > least) {
        size_t b = at - 1;
        uint32_t cp;
        while (b > least && ((unsigned char)text.p[b] & 0xC0) == 0x80)
            b--;
        if (b + (size_t)utf8_next(text.p + b, text.p + at, &cp) != at || !(ucd_class(cp) & UCD_SPACE))
            break;
        at = b;
    }
    return at;
}

/* True if neither a word ends at begin nor one starts at end. */
static bool is_single(struct span text, size_t begin, size_t end)
{
    size_t b = begin;
    uint32_t cp;

    if (end < text.n) {
        utf8_next(text.p + end, text.p + text.n, &cp);
        if (hf_class(cp) & HF_WORD)
            return false;
    }
    while (b > 0 && b + 4 > begin && ((unsigned char)text.p[--b] & 0xC0) == 0x80)
        ;
    if (begin == 0)
        return true;
    utf8_next(text.p + b, text.p + begin, &cp);
    return !(hf_class(cp) & HF_WORD);
}

bool added_find(const struct added_set *s, struct span text, size_t from, size_t from_text, struct added_match *m)
{
    const struct added_token *t = NULL;
    size_t at = from;

    for (;; at++) {
        if (s->only_first >= 0) {
            const char *hit = at < text.n ? memchr(text.p + at, s->only_first, text.n - at) : NULL;
            at = hit ? (size_t)(hit - text.p) : text.n;
        } else {
            while (at < text.n && s->by_first[(unsigned char)text.p[at]] == s->by_first[(unsigned char)text.p[at] + 1])
                at++;
        }
        if (at >= text.n)
            return false;
        if (!(t = token_at(s, text.p + at, text.n - at)))
            continue;
        if (!t->single_word || is_single(text, at, at + t->text.n))
            break;
        at += t->text.n - 1;
    }
    m->token = t;
    m->begin = t->lstrip ? from_text < at ? added_skip_space_back(text, at, from_text) : from_text : at;
    m->next = at + t->text.n;
    m->end = t->rstrip ? added_skip_space(text, m->next) : m->next;
    return true;
}

const struct added_token *added_get(const struct added *a, uint32_t id)
{
    const struct added_set *sets[] = {&a->raw, &a->normalized};

    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < sets[k]->n; i++)
            if (sets[k]->v[i].id == id)
                return &sets[k]->v[i];
    return NULL;
}

const struct added_token *added_special(const struct added *a, struct span text)
{
    const struct added_set *sets[] = {&a->raw, &a->normalized};

    for (int k = 0; k < 2; k++)
        for (uint32_t i = 0; i < sets[k]->n; i++)
            if (sets[k]->v[i].special && span_eq(sets[k]->v[i].text, text))
                return &sets[k]->v[i];
    return NULL;
}

void added_free(struct added *a)
{
    struct added_set *sets[] = {&a->raw, &a->normalized};

    for (int k = 0; k < 2; k++) {
        for (uint32_t i = 0; i < sets[k]->n; i++)
            free((void *)(uintptr_t)sets[k]->v[i].text.p);
        free(sets[k]->v);
    }
    memset(a, 0, sizeof *a);
}
