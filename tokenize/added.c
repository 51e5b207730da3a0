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

/* Notes that a token may begin with these two bytes. */
static void note(struct added_set *s, unsigned b, unsigned c, unsigned group)
{
    const unsigned byte[2] = {b, c};

    s->next[b / 8][c] |= (uint8_t)(1 << b % 8);
    for (int k = 0; k < 2; k++) {
        s->low[k][byte[k] & 15] |= (uint8_t)(1 << group);
        s->high[k][byte[k] >> 4] |= (uint8_t)(1 << group);
    }
}

static void finish(struct added_set *s)
{
    uint32_t at = 0;
    unsigned firsts = 0;

    if (s->n)
        qsort(s->v, s->n, sizeof *s->v, compare);
    s->specials_only = true;
    for (int b = 0; b < 256; b++) {
        s->by_first[b] = at;
        for (; at < s->n && (unsigned char)s->v[at].text.p[0] == b; at++) {
            struct span text = s->v[at].text;
            s->specials_only &= s->v[at].special;
            /* A token of one byte goes with any byte behind it. */
            for (unsigned c = text.n > 1 ? (unsigned char)text.p[1] : 0; c < 256; c += text.n > 1 ? 256 : 1)
                note(s, (unsigned)b, c, firsts % 8);
        }
        firsts += at > s->by_first[b];
    }
    s->by_first[256] = at;
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

    if (left > 1 && !(s->next[b / 8][(unsigned char)p[1]] >> b % 8 & 1))
        return NULL;
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

size_t added_candidate_slow(const struct added_set *s, struct span text, size_t at)
{
    for (; at < text.n; at++) {
        unsigned b = (unsigned char)text.p[at];
        if (at + 1 < text.n ? s->next[b / 8][(unsigned char)text.p[at + 1]] >> b % 8 & 1 : s->by_first[b] < s->by_first[b + 1])
            break;
    }
    return at < text.n ? at : text.n;
}

bool added_find(const struct added_set *s, struct span text, size_t from, size_t from_text, struct added_match *m)
{
    const struct added_token *t = NULL;
    size_t at = from;

    for (;; at++) {
        at = ISA_PICK(added_candidate)(s, text, at);
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
